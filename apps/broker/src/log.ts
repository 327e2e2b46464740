import { type Logger, pino } from 'pino'

export type { Logger } from 'pino'

/** JSON lines on standard output. What is logged never holds a body, a payload or a secret. */
export function createLogger(options: {
  readonly level: string
  readonly node: string
  readonly process: string
}): Logger {
  return pino({
    level: options.level,
    base: { node: options.node, process: options.process, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  })
}
