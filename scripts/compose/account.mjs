// Tracks each message of a load, and what went wrong.

export class Account {
  /**
   * Descriptions of faults: failed requests, refused acks, messages that were delivered although they must
   * not be.
   */
  faults = []
  repeated = 0
  #leaseMs
  #mayComeAgain
  #pushed = new Set()
  /** By message id: when the last pop that got it was sent, and whether its ack is confirmed. */
  #popped = new Map()

  constructor({ leaseSeconds, mayComeAgain }) {
    this.#leaseMs = leaseSeconds * 1_000
    this.#mayComeAgain = mayComeAgain
  }

  get pushedCount() {
    return this.#pushed.size
  }

  get poppedCount() {
    return this.#popped.size
  }

  /** How many messages were confirmed to their producer and never delivered. */
  get missingCount() {
    return [...this.#pushed].filter((id) => !this.#popped.has(id)).length
  }

  pushed(items) {
    for (const { transactionId } of items) this.#pushed.add(transactionId)
  }

  popped(messages, sentAtMs) {
    for (const { transactionId: id } of messages) {
      const before = this.#popped.get(id)
      if (before !== undefined) this.#cameAgain(id, before)
      this.#popped.set(id, { sentAtMs, isAcked: false })
    }
  }

  /** `results` are those of the response, in the order of the messages. */
  acked(messages, results) {
    for (const [i, { transactionId: id }] of messages.entries()) {
      const popped = this.#popped.get(id)
      if (results[i]?.success === true) popped.isAcked = true
      else if (!this.#mayHaveEnded(popped)) this.faults.push(`the ack of ${id} was refused`)
    }
  }

  #cameAgain(id, before) {
    this.repeated += 1
    if (before.isAcked) this.faults.push(`${id} was delivered again although it was acknowledged`)
    else if (!this.#mayHaveEnded(before)) this.faults.push(`${id} was delivered twice`)
  }

  /**
   * Measures from the time the pop was sent. The lease began later, so this errs in favour of the cluster.
   */
  #mayHaveEnded({ sentAtMs }) {
    return this.#mayComeAgain && performance.now() - sentAtMs >= this.#leaseMs
  }
}
