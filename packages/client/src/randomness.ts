/** At least 0 and less than 1. */
export type Random = () => number

/** Sufficient for jitter and ids. Unlike `randomUUID`, it also works in web pages without TLS. */
export const systemRandom: Random = () => {
  const [number = 0] = crypto.getRandomValues(new Uint32Array(1))
  return number / 2 ** 32
}

/** Ids unique to this client: 120 random bits, then a counter. */
export function createIdSource(random: Random = systemRandom): () => string {
  const prefix = Array.from({ length: 4 }, () =>
    Math.floor(random() * 2 ** 30)
      .toString(36)
      .padStart(6, '0'),
  ).join('')
  let count = 0
  return () => {
    count += 1
    return `${prefix}-${count.toString(36)}`
  }
}
