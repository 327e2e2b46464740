import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'

export interface PatientAnswer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: the tests look into answers of every shape
  readonly body: any
}

/**
 * A client that keeps its connections and retries once, and only if a connection closed before any byte of
 * the response. Every other failure is thrown: the outcome of a request with a partial response is unknown.
 */
export class PatientClient {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 200 })
  readonly #base: string
  retries = 0

  constructor(base: string) {
    this.#base = base
  }

  async ask(method: string, path: string, body?: unknown): Promise<PatientAnswer> {
    try {
      return await this.#once(method, path, body)
    } catch (error) {
      if (!(error instanceof ClosedUnanswered)) throw error
      this.retries += 1
      return await this.#once(method, path, body)
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  #once(method: string, path: string, body: unknown): Promise<PatientAnswer> {
    return new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json' }
      const call = request(`${this.#base}${path}`, { method, agent: this.#agent, headers })
      let hasBytes = (): boolean => false
      call.once('socket', (socket) => {
        hasBytes = sinceNow(socket)
      })
      call.once('error', (error) => {
        const isUnanswered = closings.has(codeOf(error)) && !hasBytes()
        reject(isUnanswered ? new ClosedUnanswered(error.message) : error)
      })
      call.once('response', (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (part: string) => {
          text += part
        })
        response.once('error', reject)
        response.once('end', () => {
          // An error page of a balancer is not JSON.
          const isJson = response.headers['content-type']?.includes('json') === true
          const body: unknown = text === '' || !isJson ? text || undefined : JSON.parse(text)
          resolve({ status: response.statusCode ?? 0, body })
        })
      })
      call.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}

class ClosedUnanswered extends Error {}

const closings = new Set(['ECONNRESET', 'EPIPE'])

function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? ''
}

/** Returns a function that says whether bytes were received since now. Earlier responses do not count. */
function sinceNow(socket: Socket): () => boolean {
  const before = socket.bytesRead
  return () => socket.bytesRead > before
}
