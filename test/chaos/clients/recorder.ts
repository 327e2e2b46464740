import { monotonicMs } from '../history/clock.ts'
import type { HistoryWriter } from '../history/history-writer.ts'
import type { CallRecord } from '../history/records.ts'
import type { CallResult } from './outcomes.ts'
import type { WireCall } from './wire-call.ts'

export interface RecorderOptions {
  readonly writer: HistoryWriter
  /** The name of the client, unique within the run. */
  readonly process: string
  readonly workload: string
  /** Called with every finished call. */
  readonly onEnded: (record: CallRecord) => void
}

/** Writes the calls of one client to the history. */
export class Recorder {
  readonly #options: RecorderOptions

  constructor(options: RecorderOptions) {
    this.#options = options
  }

  /** Call this before sending; call the returned function once the outcome is known. */
  begin(call: WireCall): (call: WireCall, result: CallResult) => void {
    const { writer, process, workload, onEnded } = this.#options
    const begun = { process, workload, start: monotonicMs() }
    const sent = writer.sent({ ...call, ...begun })
    return (finished, result) => {
      const record = { ...finished, ...begun, end: monotonicMs(), ...result }
      writer.answered(sent, record)
      onEnded(record)
    }
  }
}
