// Serves `/live` and `/ready` while the start waits for the database. The process is live but not ready; `/ready` gives
// the reason. The listener closes before the workers bind the port.
//
// A node that merely starts does not listen yet. A balancer that does not check nodes, such as nginx, goes to another
// node if a connection is refused, but must not repeat a request that a node has answered with an error.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { isLoopback } from '@rouse/gossip'
import { RouseError, toProblem } from '@rouse/protocol'
import type { Config } from '../config/config.ts'
import { readTls, type TlsSettings } from '../http/tls.ts'
import type { Logger } from '../log.ts'

export interface StartListenerOptions {
  readonly config: Pick<Config, 'host' | 'port' | 'nodeId'> & TlsSettings
  readonly log: Logger
  /** The reason why the node is not ready. */
  readonly reason: () => string
}

export interface StartListener {
  /** Listens from now on, because the start waits for something. Idempotent. */
  open(): void
  /** Resolves when the port is free. */
  stop(): Promise<void>
}

/** A start that takes longer, such as that of a long migration, is reported, too. Most nodes need no listener. */
const startAfterMs = 5_000

export function startListener({ config, log, reason }: StartListenerOptions): StartListener {
  // The reason may name hosts, logins and sessions of the database, and clients need no credential to read
  // it.
  const mayShow = isLoopback(config.host)
  let server: Server | undefined
  /** Settles when the server listens or has failed to listen. */
  let began: Promise<void> | undefined
  const timer = setTimeout(open, startAfterMs)

  function open(): void {
    clearTimeout(timer)
    // With port 0 the address is not known yet.
    if (config.port !== 0) began ??= listen()
  }

  async function listen(): Promise<void> {
    // Loaded only here, because a primary that starts quickly needs no HTTP server and saves the memory.
    const { createServer } = await import('node:http')
    const tls = readTls(config)
    const respond = (request: IncomingMessage, response: ServerResponse): void => {
      const path = request.url?.split('?', 1)[0]
      if (path === '/live') {
        response.setHeader('x-request-id', randomUUID())
        answer(response, 200, { status: 'live', node: config.nodeId })
      } else refuse(response, config.nodeId, mayShow ? reason() : 'the log has the reason')
    }
    const made =
      tls === undefined
        ? createServer(respond)
        : (await import('node:https')).createServer(tls, respond)
    server = made
    await new Promise<void>((resolve) => {
      // If the port is still taken when the workers start, the workers report it.
      made.on('error', (error) => {
        log.warn({ reason: error.message }, 'cannot bind the port yet')
        resolve()
      })
      made.listen(config.port, config.host, resolve)
    })
  }

  return {
    open,
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
  const requestId = randomUUID()
  response.setHeader('x-request-id', requestId)
  answer(response, error.status, toProblem(error, { requestId, node }))
}

function answer(response: ServerResponse, status: number, body: object): void {
  const type = status === 200 ? 'application/json' : 'application/problem+json'
  response.writeHead(status, { 'content-type': type, connection: 'close' })
  response.end(JSON.stringify(body))
}
