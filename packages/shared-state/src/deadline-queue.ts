/** Members that are due a fixed delay after they were added, so the first added is the first due. */
export class DeadlineQueue<M> {
  readonly #dueAt = new Map<M, number>()
  readonly #delayMs: number

  constructor(delayMs: number) {
    this.#delayMs = delayMs
  }

  /** Adding a member again restarts its delay. */
  add(member: M, now: number): void {
    this.#dueAt.delete(member)
    this.#dueAt.set(member, now + this.#delayMs)
  }

  delete(member: M): void {
    this.#dueAt.delete(member)
  }

  /** The first due member that fits. */
  find(fits: (member: M) => boolean): M | undefined {
    for (const member of this.#dueAt.keys()) if (fits(member)) return member
    return undefined
  }

  /** Infinity when there is none. */
  firstDueAt(): number {
    return this.#dueAt.values().next().value ?? Number.POSITIVE_INFINITY
  }

  /** Removes and returns the members that are due. */
  takeDue(now: number): M[] {
    const due: M[] = []
    for (const [member, dueAt] of this.#dueAt) {
      if (dueAt > now) break
      due.push(member)
      this.#dueAt.delete(member)
    }
    return due
  }
}
