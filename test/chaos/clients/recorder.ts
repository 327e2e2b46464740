import { monotonicMs } from '../history/clock.ts'
import type { HistoryWriter } from '../history/history-writer.ts'
import type { CallRecord } from '../history/records.ts'
import type { Heard } from './outcomes.ts'
import type { WireCall } from './wire-call.ts'

export interface RecorderOptions {
  readonly writer: HistoryWriter
  /** The client, by a name that no other one of the run has. */
  readonly process: string
  readonly workload: string
  /** Hears of every call that has ended. */
  readonly onEnded: (record: CallRecord) => void
}

/** Puts the calls of one client into the history. */
export class Recorder {
  readonly #options: RecorderOptions

  constructor(options: RecorderOptions) {
    this.#options = options
  }

  /** To be called before anything is sent; what it returns, once the outcome is known. */
  begin(call: WireCall): (told: WireCall, heard: Heard) => void {
    const { writer, process, workload, onEnded } = this.#options
    const begun = { process, workload, start: monotonicMs() }
    const sent = writer.sent({ ...call, ...begun })
    return (told, heard) => {
      const record = { ...told, ...begun, end: monotonicMs(), ...heard }
      writer.answered(sent, record)
      onEnded(record)
    }
  }
}
