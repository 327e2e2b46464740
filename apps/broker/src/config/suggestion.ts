import { editDistance } from '@rouse/protocol'

/** Returns `; did you mean X?` if a known name is close, otherwise an empty string. */
export function suggestion(name: string, known: readonly string[], prefix = ''): string {
  const distanceMax = Math.max(2, Math.floor(name.length / 4))
  let best: string | undefined
  let bestDistance = distanceMax + 1
  for (const candidate of known) {
    const distance = editDistance(name, candidate)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best === undefined ? '' : `; did you mean ${prefix}${best}?`
}
