// Writes a history: one file per process, one JSON line per record, in the order in which the process saw
// them.
//
// A client may be killed with SIGKILL at any time. So each call is written twice: before it is sent (`sent`:
// what it may do) and when the response is known (`answered`: its result). Both are write(2) calls that
// return before the process continues. What the kernel accepted survives the process; only a crash of the
// machine would lose it. There is no buffer to flush: writing a line takes microseconds, and a call takes
// milliseconds.
//
// A killed client leaves complete records, except for calls without a response. The reader treats such calls
// as `unknown`:
// - A push that reached the queue is in the history before a consumer can get its message. So the death of a
//   producer never makes a delivered value unexpected.
// - If a response was read but not written, its call is unknown, not ok, so no rule relies on it.
// - An ack, release or pop in progress may have taken effect, which explains what the next consumer sees.
// The last line of a killed process may be incomplete; it has no newline, and the reader drops it.
import { closeSync, openSync, writeSync } from 'node:fs'
import type { CallRecord, Note } from './records.ts'

/** A call as it is known before it is sent. */
export type SentCall = WithoutAnswer<CallRecord>
type WithoutAnswer<Call> = Call extends CallRecord
  ? Omit<Call, 'end' | 'outcome' | 'status' | 'code' | 'messages'>
  : never

export class HistoryWriter {
  readonly #file: number
  #sent = 0

  /** Appends, so that a restarted process can continue its file. */
  constructor(path: string) {
    this.#file = openSync(path, 'a')
  }

  /** Call this before the request is sent. Returns the number to pass to `answered`. */
  sent(call: SentCall): number {
    this.#sent += 1
    this.#write({ sent: this.#sent, ...call })
    return this.#sent
  }

  /** Call this with the response, or when it is certain that there will be none. */
  answered(sent: number, record: CallRecord): void {
    this.#write({ answers: sent, ...record })
  }

  /** Writes a fault, a queue or the audit. A call that failed before anything was sent needs no record. */
  note(record: Note): void {
    this.#write(record)
  }

  close(): void {
    closeSync(this.#file)
  }

  #write(line: object): void {
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`)
    let written = 0
    while (written < bytes.length) written += writeSync(this.#file, bytes, written)
  }
}
