// How errors are answered: as problem+json, also to bytes that are no valid request.
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { RouseError, toProblem } from '@rouse/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { BrokerContext } from '../worker/context.ts'
import { refusalOf } from './audit.ts'
import { toRouseError } from './errors.ts'

const swallowedBytesMax = 64 * 1024 * 1024

type Answering = Pick<BrokerContext, 'config' | 'log' | 'audit'>

export function sendProblem(
  context: Answering,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): FastifyReply {
  const known = toRouseError(error)
  if (known.code === 'internal') {
    context.log.error(
      { requestId: request.id, method: request.method, err: known.cause ?? error },
      'request failed',
    )
  } else {
    const { id: requestId, method } = request
    context.log.debug({ requestId, method, code: known.code }, 'request refused')
  }
  const problem = toProblem(known, { requestId: request.id, node: context.config.nodeId })
  if (known.retryAfterSeconds !== undefined) reply.header('retry-after', known.retryAfterSeconds)
  if (known.code === 'unauthenticated' || known.code === 'forbidden') {
    context.audit.recordRefusal(() => refusalOf(request, known))
  }
  if (known.code === 'unauthenticated') reply.header('www-authenticate', 'Bearer realm="rouse"')
  if (known.code === 'payload_too_large') swallowBody(request, reply)
  // Some errors of the framework skip the hooks.
  reply.header('x-request-id', request.id)
  const isTransaction = request.url.startsWith('/api/v1/transaction')
  return reply
    .code(known.status)
    .type('application/problem+json')
    .send(JSON.stringify(isTransaction ? { success: false, ...problem } : problem))
}

/**
 * If a connection is closed while bytes still arrive, it is reset, and the client never reads the error. So
 * the rest of a body that is too large is read and dropped, up to a limit of bytes and the request timeout.
 */
function swallowBody(request: FastifyRequest, reply: FastifyReply): void {
  if (Number(request.headers['content-length'] ?? 0) > swallowedBytesMax) return
  reply.removeHeader('connection')
  request.raw.resume()
}

/**
 * Node's parser rejected the bytes, so Fastify has no request. Writes the response to the socket itself. After an error of
 * the connection or of TLS there is nothing to write to: a response would wait for the end of the handshake.
 */
export function answerClientError(context: Answering, error: Error, socket: Socket): void {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (!/^(HPE|ERR_HTTP)_/.test(code) || !socket.writable) {
    socket.destroy()
    return
  }
  const known = new RouseError(
    code === 'HPE_HEADER_OVERFLOW'
      ? 'headers_too_large'
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? 'timeout'
        : 'invalid_request',
    `the request is not valid HTTP (${code})`,
  )
  const ids = { requestId: randomUUID(), node: context.config.nodeId }
  const body = JSON.stringify(toProblem(known, ids))
  socket.end(
    `HTTP/1.1 ${known.status} ${statusText(known.status)}\r\n` +
      `content-type: application/problem+json\r\nx-request-id: ${ids.requestId}\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}

function statusText(status: number): string {
  return status === 431
    ? 'Request Header Fields Too Large'
    : status === 408
      ? 'Request Timeout'
      : 'Bad Request'
}
