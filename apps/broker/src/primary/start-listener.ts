// Answers in the place of the workers while the database is being prepared: the process lives and is not ready, and says
// why. It leaves the port before the workers take it.
import { randomUUID } from 'node:crypto'
import type { Server, ServerResponse } from 'node:http'
import { RouseError, toProblem } from '@rouse/protocol'
import type { Config } from '../config/config.ts'
import type { Logger } from '../log.ts'

export interface StartListenerOptions {
  readonly config: Pick<Config, 'host' | 'port' | 'nodeId'>
  readonly log: Logger
  /** What the node waits for just now. */
  readonly reason: () => string
}

export interface StartListener {
  /** Resolves when nothing is left of it on the port. */
  stop(): Promise<void>
}

/** Most starts are over before anybody asks. */
const startAfterMs = 250

export function startListener({ config, log, reason }: StartListenerOptions): StartListener {
  let server: Server | undefined
  /** Settled once it listens or cannot. */
  let began = Promise.resolve()
  // A port that the system chooses is not known yet.
  const timer =
    config.port === 0
      ? undefined
      : setTimeout(() => {
          began = listen()
        }, startAfterMs)

  async function listen(): Promise<void> {
    // A primary that starts at once needs no HTTP server, and its memory is counted.
    const { createServer } = await import('node:http')
    const made = createServer((request, response) => {
      const path = request.url?.split('?', 1)[0]
      if (path === '/live') answer(response, 200, { status: 'live', node: config.nodeId })
      else refuse(response, config.nodeId, reason())
    })
    server = made
    await new Promise<void>((resolve) => {
      // The workers will say so if the port is still taken then.
      made.on('error', (error) => {
        log.warn({ reason: error.message }, 'cannot listen yet')
        resolve()
      })
      made.listen(config.port, config.host, resolve)
    })
  }

  return {
    async stop() {
      clearTimeout(timer)
      await began
      const last = server
      server = undefined
      if (last?.listening !== true) return
      await new Promise<void>((resolve) => {
        last.close(() => resolve())
        last.closeAllConnections()
      })
    },
  }
}

function refuse(response: ServerResponse, node: string, reason: string): void {
  const error = new RouseError('starting', reason)
  response.setHeader('retry-after', String(error.retryAfterSeconds))
  answer(response, error.status, toProblem(error, { requestId: randomUUID(), node }))
}

function answer(response: ServerResponse, status: number, body: object): void {
  const type = status === 200 ? 'application/json' : 'application/problem+json'
  response.writeHead(status, { 'content-type': type, connection: 'close' })
  response.end(JSON.stringify(body))
}
