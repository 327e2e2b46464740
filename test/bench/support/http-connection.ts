// A keep-alive HTTP/1.1 connection for benchmarks: one request at a time and minimal parsing, so that the
// load generator leaves the cores to the system under test.
import { connect, type Socket } from 'node:net'

export interface Answer {
  readonly status: number
  readonly body: Buffer
}

const headEnd = Buffer.from('\r\n\r\n')
const lengthName = Buffer.from('content-length: ')

/** Returns the bytes of a request, so that it is built once and sent often. */
export function requestBytes(method: string, path: string, body?: string, token?: string): Buffer {
  const length =
    body === undefined
      ? ''
      : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`
  const authorization = token === undefined ? '' : `authorization: Bearer ${token}\r\n`
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\nhost: localhost\r\n${authorization}${length}\r\n${body ?? ''}`,
  )
}

export class HttpConnection {
  readonly #socket: Socket
  #chunks: Buffer[] = []
  #have = 0
  /** The length of the incoming response, once its head is parsed. */
  #want = 0
  #bodyAt = 0
  #waiting: { resolve: (answer: Answer) => void; reject: (error: Error) => void } | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (chunk) => this.#onData(chunk))
    socket.on('error', (error) => this.#waiting?.reject(error))
    socket.on('close', () => this.#waiting?.reject(new Error('the connection closed')))
  }

  static async open(url: string): Promise<HttpConnection> {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('error', reject)
    })
    return new HttpConnection(socket)
  }

  request(bytes: Buffer): Promise<Answer> {
    this.#socket.write(bytes)
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  close(): void {
    this.#waiting = undefined
    this.#socket.destroy()
  }

  #onData(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#have += chunk.length
    if (this.#want === 0 && !this.#readHead()) return
    if (this.#have < this.#want) return
    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#have)
    const body = bytes.subarray(this.#bodyAt)
    this.#chunks = []
    this.#have = 0
    this.#want = 0
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.resolve({ status: Number(bytes.toString('latin1', 9, 12)), body })
  }

  #readHead(): boolean {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)]
    const bytes = this.#chunks[0] as Buffer
    const end = bytes.indexOf(headEnd)
    if (end < 0) return false
    const lengthAt = bytes.indexOf(lengthName)
    const hasBody = lengthAt >= 0 && lengthAt < end
    const length = hasBody
      ? Number.parseInt(bytes.toString('latin1', lengthAt + 16, lengthAt + 26), 10)
      : 0
    this.#bodyAt = end + headEnd.length
    this.#want = this.#bodyAt + length
    return true
  }
}
