/** A loop of the primary. `start` resolves when it runs, `stop` when nothing of it is left; both may be called twice. */
export interface Service {
  start(): Promise<void>
  stop(): Promise<void>
}

/** One round of work that the due-watch calls for. Resolves to whether there may be more at once. */
export interface Chore {
  run(): Promise<boolean>
}
