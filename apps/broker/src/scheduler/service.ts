/** A loop of the primary. `start` resolves when it runs, `stop` when it has ended. Both are idempotent. */
export interface Service {
  start(): Promise<void>
  stop(): Promise<void>
}

/** The trigger of a job: its due time, or a NOTIFY. */
export type FiredBy = 'timer' | 'notify'

/** A job of the scheduler. `run` resolves to whether there may be more work at once. */
export interface Job {
  run(firedBy: FiredBy): Promise<boolean>
}
