/**
 * Shares one read among concurrent callers, one read at a time. A caller that arrives during a read shares
 * the next one, because the current read may have started before the change that the caller wants to see.
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
