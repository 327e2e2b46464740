import * as http from 'node:http'
import * as https from 'node:https'
import {
  type Transport,
  type TransportAnswer,
  TransportError,
  type TransportRequest,
} from './transport.ts'

/** Keeps connections alive. There are as many connections as concurrent calls, which the client limits. */
const agentOptions = { keepAlive: true, scheduling: 'lifo' } as const

export function createTransport(): Transport {
  const agents = {
    'http:': new http.Agent(agentOptions),
    'https:': new https.Agent(agentOptions),
  }
  return {
    send: (request) =>
      request.url.protocol === 'https:'
        ? sendBy(https.request, agents['https:'], request)
        : sendBy(http.request, agents['http:'], request),
    close() {
      agents['http:'].destroy()
      agents['https:'].destroy()
    },
  }
}

function sendBy(
  begin: typeof http.request,
  agent: http.Agent,
  { method, url, headers, body, signal, leave }: TransportRequest,
): Promise<TransportAnswer> {
  return new Promise((resolve, reject) => {
    const stopWaiting = (): void => halfClose(request)
    // The option `signal` of a request costs more: it also watches the ends of both streams.
    const abort = (): void => void request.destroy(new Error('the request was aborted'))
    const settled = (): void => {
      leave?.removeEventListener('abort', stopWaiting)
      signal.removeEventListener('abort', abort)
    }
    const fail = (error: unknown): void => {
      settled()
      reject(new TransportError(error))
    }
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const request = begin(
      {
        agent,
        method,
        hostname: url.hostname.replace(/^\[(.*)\]$/, '$1'),
        port: url.port,
        path: `${url.pathname}${url.search}`,
        headers: { ...headers, ...length },
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', fail)
        response.on('end', () => {
          settled()
          const text =
            chunks.length === 1 ? String(chunks[0]) : Buffer.concat(chunks).toString('utf8')
          const retryAfter = response.headers['retry-after']
          resolve({ status: response.statusCode ?? 0, retryAfter, text })
        })
      },
    )
    request.on('error', fail)
    leave?.addEventListener('abort', stopWaiting)
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
    request.end(body)
  })
}

/**
 * Closes our side of the connection and keeps reading. The node sends its response, if it has one, and then
 * closes its side. Therefore the request settles with or without a response.
 */
function halfClose(request: http.ClientRequest): void {
  const { socket } = request
  if (socket === null || socket.connecting) request.destroy()
  else socket.end()
}
