/** A number of slots; those who wait for one get it in order, the urgent before the others. */
export class Semaphore {
  #free: number
  readonly #urgent: (() => void)[] = []
  readonly #patient: (() => void)[] = []

  constructor(slots: number) {
    this.#free = slots
  }

  async use<T>(work: () => Promise<T>, urgency: 'urgent' | 'patient'): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else {
      const queue = urgency === 'urgent' ? this.#urgent : this.#patient
      await new Promise<void>((resolve) => queue.push(resolve))
    }
    try {
      return await work()
    } finally {
      const next = this.#urgent.shift() ?? this.#patient.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }
}
