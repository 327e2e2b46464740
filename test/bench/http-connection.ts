// A keep-alive HTTP/1.1 connection for benchmarks: one request at a time, no more work than the answer needs, so that
// the load generator leaves the cores to what it measures.
import { connect, type Socket } from 'node:net'

export interface Answer {
  readonly status: number
  readonly body: Buffer
}

export class HttpConnection {
  readonly #socket: Socket
  readonly #host: string
  #buffered: Buffer = Buffer.alloc(0)
  #waiting: { resolve: (answer: Answer) => void; reject: (error: Error) => void } | undefined

  private constructor(socket: Socket, host: string) {
    this.#socket = socket
    this.#host = host
    socket.setNoDelay(true)
    socket.on('data', (chunk) => this.#onData(chunk))
    socket.on('error', (error) => this.#waiting?.reject(error))
    socket.on('close', () => this.#waiting?.reject(new Error('the connection closed')))
  }

  static async open(url: string): Promise<HttpConnection> {
    const { hostname, port, host } = new URL(url)
    const socket = connect(Number(port), hostname)
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('error', reject)
    })
    return new HttpConnection(socket, host)
  }

  request(method: string, path: string, body?: string): Promise<Answer> {
    const length =
      body === undefined
        ? ''
        : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`
    this.#socket.write(
      `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n${length}\r\n${body ?? ''}`,
    )
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  close(): void {
    this.#waiting = undefined
    this.#socket.destroy()
  }

  #onData(chunk: Buffer): void {
    this.#buffered = this.#buffered.length === 0 ? chunk : Buffer.concat([this.#buffered, chunk])
    const end = this.#buffered.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#buffered.toString('latin1', 0, end)
    const length = /content-length: (\d+)/i.exec(head)
    const status = Number(head.slice(9, 12))
    const total = end + 4 + Number(length?.[1] ?? 0)
    if (this.#buffered.length < total) return
    const body = this.#buffered.subarray(end + 4, total)
    this.#buffered = this.#buffered.subarray(total)
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.resolve({ status, body })
  }
}
