// The audit log of a worker. Every entry is a line in the log of the node, and a row of rouse.audit. If the row cannot
// be written, the line is all there is.
//
// Refused requests can be as frequent as an attacker likes, so only a sample of them is recorded.
import type { AuditEntry } from '@rouse/storage'
import type { Clock } from '../clock.ts'
import type { Logger } from '../log.ts'

/** Entries that wait for the database. Further ones are only logged. */
const pendingMax = 1_000
/** A response waits no longer than this for its entry. */
const storeMsMax = 2_000
const refusalsPerSecond = 1
const refusalsAtOnce = 10

export interface AuditLogOptions {
  readonly write: (entries: readonly AuditEntry[]) => Promise<void>
  readonly log: Logger
  readonly clock: Clock
}

export class AuditLog {
  readonly #options: AuditLogOptions
  #pending: AuditEntry[] = []
  #writing: Promise<void> = Promise.resolve()
  #refusalsLeft = refusalsAtOnce
  #refilledAtMs: number
  #left = 0

  constructor(options: AuditLogOptions) {
    this.#options = options
    this.#refilledAtMs = options.clock.nowMs()
  }

  /** Resolves when the entry is stored, or cannot be stored within two seconds. */
  record(given: AuditEntry): Promise<void> {
    const { log } = this.#options
    const entry = storable(given)
    log.info({ audit: entry }, 'audit')
    if (this.#pending.length >= pendingMax) return Promise.resolve()
    this.#pending.push(entry)
    this.#writing = this.#writing.then(() => this.#writePending())
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, storeMsMax)
    })
    return Promise.race([this.#writing, late]).finally(() => clearTimeout(timer))
  }

  /** Records a refused request, unless too many were refused just now. The next entry says how many were left out. */
  recordRefusal(describe: () => AuditEntry): void {
    const nowMs = this.#options.clock.nowMs()
    const gained = ((nowMs - this.#refilledAtMs) / 1_000) * refusalsPerSecond
    this.#refusalsLeft = Math.min(this.#refusalsLeft + gained, refusalsAtOnce)
    this.#refilledAtMs = nowMs
    if (this.#refusalsLeft < 1) {
      this.#left += 1
      return
    }
    this.#refusalsLeft -= 1
    const entry = describe()
    const leftOut = this.#left === 0 ? {} : { leftOut: this.#left }
    this.#left = 0
    void this.record({ ...entry, detail: { ...entry.detail, ...leftOut } })
  }

  async #writePending(): Promise<void> {
    const entries = this.#pending
    if (entries.length === 0) return
    this.#pending = []
    try {
      await this.#options.write(entries)
    } catch (error) {
      const reason = (error as Error).message
      this.#options.log.warn(
        { reason, entries: entries.length },
        'audit entries could not be stored',
      )
    }
  }
}

/**
 * The entry with U+FFFD for what PostgreSQL does not store: NUL and lone surrogates. Otherwise one request
 * with such a name would make all entries fail that are written together with its own.
 */
function storable(entry: AuditEntry): AuditEntry {
  const text = JSON.stringify(entry, (_name, value: unknown) =>
    typeof value === 'string' ? Buffer.from(value).toString().replaceAll('\0', '\uFFFD') : value,
  )
  return JSON.parse(text) as AuditEntry
}
