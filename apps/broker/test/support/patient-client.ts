import { Agent, request } from 'node:http'

export interface PatientAnswer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: the tests look into answers of every shape
  readonly body: any
}

/**
 * A client that keeps its connections and asks once more only where a connection closed before any byte of the answer.
 * Whatever else goes wrong is thrown.
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
      if (!(error instanceof ClosedEarly)) throw error
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
      call.once('error', (error) => reject(new ClosedEarly(error.message)))
      call.once('response', (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (part: string) => {
          text += part
        })
        response.once('error', reject)
        response.once('end', () => {
          const parsed: unknown = text === '' ? undefined : JSON.parse(text)
          resolve({ status: response.statusCode ?? 0, body: parsed })
        })
      })
      call.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}

class ClosedEarly extends Error {}
