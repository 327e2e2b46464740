import type { WorkerProcesses } from './worker-pool.ts'

/** Tells workers whether any node waits for messages. Without that, they keep their hints. */
export class HintsWanted {
  readonly #workers: Pick<WorkerProcesses, 'post' | 'postAll'>
  /** What workers know; they begin with true. */
  #areWanted = true

  constructor(workers: Pick<WorkerProcesses, 'post' | 'postAll'>) {
    this.#workers = workers
  }

  update(areWanted: boolean): void {
    if (areWanted === this.#areWanted) return
    this.#areWanted = areWanted
    this.#workers.postAll({ type: 'hintsWanted', areWanted })
  }

  workerReady(workerId: number): void {
    if (this.#areWanted) return
    this.#workers.post(workerId, { type: 'hintsWanted', areWanted: false })
  }
}
