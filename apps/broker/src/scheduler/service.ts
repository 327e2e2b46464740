/** A loop of the primary. `start` resolves when the loop runs, `stop` when it has ended. Idempotent. */
export interface Service {
  start(): Promise<void>
  stop(): Promise<void>
}

/** The trigger of a job: its due time, or a NOTIFY. */
export type FiredBy = 'timer' | 'notify'

/** A job of the scheduler. `run` resolves to true if the job should run again at once. */
export interface Job {
  run(firedBy: FiredBy): Promise<boolean>
}
