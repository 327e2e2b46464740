/** The name with the fewest differences from the given one, if there are few. */
export async function nearest(
  given: string,
  names: readonly string[],
): Promise<string | undefined> {
  // Loaded here, because most calls of the program need no suggestion.
  const { editDistance } = await import('@rouse/protocol')
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(given.length / 4)) + 1
  for (const name of names) {
    const distance = editDistance(given.toLowerCase(), name.toLowerCase())
    if (distance < bestDistance) {
      best = name
      bestDistance = distance
    }
  }
  return best
}
