// Where a client reports failures that no caller sees. Without `onError` and `logger` each distinct failure is
// one line on the console, because a worker that fails in silence is worse than one that is noisy.

import { errorCodeOf } from './consume/error-code.ts'
import type { ErrorAbout } from './consume/work-options.ts'

/** Takes `console`, or a logger with the same methods. */
export interface Logger {
  error(message: string, error?: unknown): void
  warn(message: string, error?: unknown): void
  info(message: string): void
}

export type ReportError = (error: unknown, about: ErrorAbout) => void

/** Distinct failures that are remembered; later ones are not printed. */
const distinctMax = 1_000

/** Reports to the logger: every failure if the user passed one, otherwise each distinct one once. */
export function createReporter(logger: Logger | undefined): (queue: string) => ReportError {
  const seen = new Set<string>()
  return (queue) => (error, about) => {
    const text = describe(error, about, queue)
    if (logger !== undefined) return logger.error(text, error)
    const key = `${queue} ${about.kind} ${errorCodeOf(error)}`
    if (seen.has(key) || seen.size >= distinctMax) return
    seen.add(key)
    // oxlint-disable-next-line no-console
    console.error(`${text} (more failures of this kind are not printed; pass onError or logger)`)
  }
}

const events = {
  handler: 'a handler failed',
  lease: 'a lease was lost, or could not be renewed',
  ack: 'an acknowledgement failed',
  fetch: 'messages could not be fetched',
} as const

function describe(error: unknown, { kind, message }: ErrorAbout, queue: string): string {
  const which = message === undefined ? '' : `, message ${message.id}, attempt ${message.attempt}`
  return `rouse: queue ${queue}${which}: ${events[kind]}: ${String(error).replaceAll(/\s+/g, ' ')}`
}
