export interface Random {
  /** The seed; a test that fails should print it. */
  readonly seed: number
  /** At least 0, below 1. */
  next(): number
  /** An integer, at least 0, below `limit`. */
  below(limit: number): number
  pick<Item>(items: readonly Item[]): Item
}

/** The same seed gives the same numbers on every machine (the mulberry32 generator). */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  function below(limit: number): number {
    return Math.floor(next() * limit)
  }
  return {
    seed,
    next,
    below,
    pick(items) {
      const item = items[below(items.length)]
      if (item === undefined) throw new RangeError('cannot pick from an empty list')
      return item
    },
  }
}
