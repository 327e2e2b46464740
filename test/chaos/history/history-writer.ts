// Writes a history: each process its own file, one JSON line a record, in the order things happened to it.
//
// A client may be killed -9 between any two instructions. So a call is written twice: when it is about to be sent
// (`sent`: what it may do), and when its client has heard (`answered`: what came of it). Both are plain write(2)
// calls that have returned before the process goes on. What the kernel took outlives the process; only the machine's own
// crash could lose it, and the harness runs on that machine. No buffer, no timer, nothing to flush: a line costs
// microseconds, a call milliseconds.
//
// So a killed client leaves at most calls that were sent and have no answer; the reader takes them as `unknown`:
// - a push that reached the queue is in the history before anybody can have been handed its message: no delivered value
//   is unexpected because its producer died;
// - an answer that was read but not yet written is unknown, not ok: no rule counts on it, and none is misled by it;
// - an ack, a release or a pop under way may have happened: that explains what the next consumer sees.
// The line at which the process died may be torn; it has no newline, and the reader drops it.
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

  /** Appends, so that a restarted process may go on in its file. */
  constructor(path: string) {
    this.#file = openSync(path, 'a')
  }

  /** To be called before the request leaves. Returns the number that its answer is written under. */
  sent(call: SentCall): number {
    this.#sent += 1
    this.#write({ sent: this.#sent, ...call })
    return this.#sent
  }

  /** To be called when the answer has come, or it is certain that none will. */
  answered(sent: number, record: CallRecord): void {
    this.#write({ answers: sent, ...record })
  }

  /** A call that went wrong before anything was sent needs no record; faults, queues and the audit are noted. */
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
