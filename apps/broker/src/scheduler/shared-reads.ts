/**
 * A reading that many ask for, one at a time. Whoever asks while one is under way gets the next, together with all who
 * ask meanwhile: the one under way may have begun before that of which they want to read.
 */
export function sharedReads(read: () => Promise<void>): () => Promise<void> {
  let current: Promise<void> | undefined
  let next: Promise<void> | undefined

  function begin(): Promise<void> {
    next = undefined
    current = read().finally(() => {
      current = undefined
    })
    return current
  }

  return () => {
    if (next !== undefined) return next
    if (current === undefined) return begin()
    next = current.then(begin, begin)
    return next
  }
}
