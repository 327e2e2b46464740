/**
 * A semaphore. Callers get a slot in order, urgent ones first. Each kind of work has a maximum below the
 * total, so that other kinds continue when one kind hangs.
 */
export class Semaphore {
  readonly #perKindMax: number
  readonly #running = new Map<string, number>()
  readonly #urgent: Waiting[] = []
  readonly #patient: Waiting[] = []
  #free: number

  constructor(slots: number, perKindMax: number) {
    this.#free = slots
    this.#perKindMax = perKindMax
  }

  async use<T>(work: () => Promise<T>, urgency: 'urgent' | 'patient', kind: string): Promise<T> {
    if (this.#free > 0 && this.#mayBegin(kind)) this.#begin(kind)
    else {
      const queue = urgency === 'urgent' ? this.#urgent : this.#patient
      await new Promise<void>((begin) => queue.push({ kind, begin }))
    }
    try {
      return await work()
    } finally {
      this.#end(kind)
    }
  }

  #mayBegin(kind: string): boolean {
    return (this.#running.get(kind) ?? 0) < this.#perKindMax
  }

  #begin(kind: string): void {
    this.#free -= 1
    this.#running.set(kind, (this.#running.get(kind) ?? 0) + 1)
  }

  #end(kind: string): void {
    this.#free += 1
    const running = (this.#running.get(kind) ?? 1) - 1
    if (running === 0) this.#running.delete(kind)
    else this.#running.set(kind, running)
    const next = this.#takeNext(this.#urgent) ?? this.#takeNext(this.#patient)
    if (next === undefined) return
    this.#begin(next.kind)
    next.begin()
  }

  #takeNext(queue: Waiting[]): Waiting | undefined {
    const at = queue.findIndex(({ kind }) => this.#mayBegin(kind))
    return at === -1 ? undefined : queue.splice(at, 1)[0]
  }
}

interface Waiting {
  readonly kind: string
  readonly begin: () => void
}
