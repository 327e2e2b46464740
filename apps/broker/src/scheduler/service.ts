/** A loop of the primary. `start` resolves when it runs, `stop` when nothing of it is left; both may be called twice. */
export interface Service {
  start(): Promise<void>
  stop(): Promise<void>
}

/** What had a chore run: its time had come, or the database notified us. */
export type FiredBy = 'timer' | 'notify'

/** One round of work that the timers call for. Resolves to whether there may be more at once. */
export interface Chore {
  run(firedBy: FiredBy): Promise<boolean>
}
