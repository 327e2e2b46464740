import type { PoolLimit } from '@rouse/database'
import { type Logger, type LoggerOptions, pino } from 'pino'
import { readableLine } from './readable-log.ts'

export type { Logger } from 'pino'

/** Logs to standard output, never a body, a payload or a secret. `auto`: text on a terminal, JSON otherwise. */
export function createLogger(options: {
  readonly level: string
  readonly node: string
  readonly process: string
  readonly format?: 'auto' | 'json' | 'text'
}): Logger {
  const { format = 'json' } = options
  const isText = format === 'text' || (format === 'auto' && process.stdout.isTTY)
  const settings = {
    level: options.level,
    base: { node: options.node, process: options.process, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: loggedError },
  } satisfies LoggerOptions
  if (!isText) return pino(settings)
  return pino(settings, { write: (line: string) => void process.stdout.write(readableLine(line)) })
}

const loggedFields = [
  'code',
  'routine',
  'schema',
  'table',
  'constraint',
  'syscall',
  'address',
  'port',
]

/** Omits `detail` and `where` of a PostgreSQL error: they may contain a row ("Failing row contains …"). */
function loggedError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const fields = Object.entries(error).filter(([name]) => loggedFields.includes(name))
  return {
    type: error.constructor.name,
    message: error.message,
    ...Object.fromEntries(fields),
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: loggedError(error.cause) }),
  }
}

/** Logs the server's connection limit once when the pool reaches it and once when it is lifted. */
export function logLimit(log: Logger): (limit: PoolLimit) => void {
  return ({ limit, max, reason }) => {
    if (reason === undefined) {
      log.info({ max }, 'PostgreSQL accepts all connections again')
      return
    }
    log.warn(
      { limit, max, reason },
      'PostgreSQL rejects further connections; continuing with fewer. Raise max_connections or lower ROUSE_CONNECTIONS_MAX',
    )
  }
}
