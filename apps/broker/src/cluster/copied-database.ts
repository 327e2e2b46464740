import type { Original } from '@rouse/storage'
import type { Logger } from '../log.ts'

/** Warns once if the database is a restored copy, in which schedules and redrives do not run. */
export class CopiedDatabase {
  readonly #log: Logger
  #original: Original | undefined

  constructor(log: Logger) {
    this.#log = log
  }

  /** The database that ours is a copy of, until it is adopted. */
  get original(): Original | undefined {
    return this.#original
  }

  seen(original: Original | undefined): void {
    if (original !== undefined && this.#original === undefined) {
      this.#log.warn(
        { copyOf: original },
        'this database is a copy of another one: schedules and redrives do not run until `rouse adopt-copy`',
      )
    }
    if (original === undefined && this.#original !== undefined) {
      this.#log.info('the copied database was adopted: schedules and redrives run')
    }
    this.#original = original
  }
}
