/** Memory: about 100 bytes each. */
const partitionsMax = 50_000

/** The queues of the partitions that a worker has seen. A partition never moves to another queue. */
export class PartitionQueues {
  readonly #queues = new Map<string, string>()

  learn(partitionId: string, queue: string): void {
    if (this.#queues.has(partitionId)) return
    this.#queues.set(partitionId, queue)
    if (this.#queues.size <= partitionsMax) return
    const oldest = this.#queues.keys().next().value
    if (oldest !== undefined) this.#queues.delete(oldest)
  }

  queueOf(partitionId: string): string | undefined {
    return this.#queues.get(partitionId)
  }
}
