// The public keys of the OIDC issuer, which the primary reads for its workers: at the start, every five minutes, and if
// a token names a key that is not among them, but then once a minute at most, because anyone can send such tokens.
//
// If the issuer cannot be reached, the keys that were read last stay valid. A worker that is started meanwhile gets them,
// too.
import type { Clock } from '../../clock.ts'
import type { PrimaryMessage, WorkerMessage } from '../../ipc.ts'
import type { Logger } from '../../log.ts'
import { type IssuerDocument, readIssuer } from './issuer-document.ts'

const refreshMs = 300_000
/** The interval of reads until the first one succeeds. */
const retryMs = 5_000
const lookAgainMs = 60_000

type Ask = Extract<WorkerMessage, { readonly type: 'askIssuer' }>

export interface IssuerKeysOptions {
  /** Undefined: tokens of an issuer are not accepted. */
  readonly issuer: string | undefined
  readonly log: Logger
  readonly clock: Clock
  readonly workers: {
    post(workerId: number, message: PrimaryMessage): void
    postAll(message: PrimaryMessage): void
  }
}

export class IssuerKeys {
  readonly #options: IssuerKeysOptions
  readonly #stopping = new AbortController()
  #document: IssuerDocument | undefined
  #text = ''
  #reading: Promise<void> | undefined
  /** When an unknown key caused a read. */
  #lookedAgainAtMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #isFailing = false

  constructor(options: IssuerKeysOptions) {
    this.#options = options
  }

  start(): void {
    if (this.#options.issuer !== undefined) void this.#read()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    clearTimeout(this.#timer)
    await this.#reading
  }

  /** A worker has started, or got a token that names an unknown key. */
  received(workerId: number, { id, isUnknownKey }: Ask): void {
    const { workers } = this.#options
    const send = () => workers.post(workerId, { type: 'issuer', document: this.#document, id })
    const reading = isUnknownKey ? this.#lookAgain() : this.#reading
    if (reading === undefined) send()
    else void reading.then(send)
  }

  #lookAgain(): Promise<void> | undefined {
    if (this.#reading !== undefined) return this.#reading
    const nowMs = this.#options.clock.nowMs()
    if (nowMs - this.#lookedAgainAtMs < lookAgainMs) return undefined
    this.#lookedAgainAtMs = nowMs
    return this.#read()
  }

  #read(): Promise<void> {
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = undefined
      clearTimeout(this.#timer)
      if (this.#stopping.signal.aborted) return
      this.#timer = setTimeout(
        () => void this.#read(),
        this.#document === undefined ? retryMs : refreshMs,
      )
    })
    return this.#reading
  }

  async #readNow(): Promise<void> {
    const { issuer, log, workers } = this.#options
    if (issuer === undefined) return
    try {
      const document = await readIssuer(issuer, this.#stopping.signal)
      const text = JSON.stringify(document)
      if (this.#isFailing || this.#document === undefined)
        log.info({ issuer }, 'read the issuer keys')
      this.#isFailing = false
      if (text === this.#text) return
      this.#document = document
      this.#text = text
      workers.postAll({ type: 'issuer', document })
    } catch (error) {
      const { message, cause } = error as Error
      const reason = cause instanceof Error ? `${message}: ${cause.message}` : message
      if (!this.#isFailing && !this.#stopping.signal.aborted)
        log.warn({ issuer, reason }, 'could not read the keys of the issuer')
      this.#isFailing = true
    }
  }
}
