// Sends spans to an OpenTelemetry collector, as OTLP over HTTP in JSON. Spans wait in a bounded queue. What does not
// fit, or cannot be sent, is dropped and counted: tracing must not slow down messages.

export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly name: string
  readonly kind: 'producer' | 'consumer' | 'internal'
  /** Milliseconds since 1970. */
  readonly fromMs: number
  readonly toMs: number
  readonly attributes: Readonly<Record<string, string | number>>
}

export interface SpanExporterOptions {
  /** The base URL of the collector, such as `http://127.0.0.1:4318`. */
  readonly url: string
  readonly node: string
  readonly version: string
  readonly onFailure: (reason: string) => void
}

const waitingMax = 2_048
const batchMax = 512
const flushMs = 1_000
const answerMsMax = 5_000

export class SpanExporter {
  readonly #options: SpanExporterOptions
  readonly #address: string
  #waiting: Span[] = []
  #isPlanned = false
  #sending: Promise<void> | undefined
  #isFailing = false
  exported = 0
  dropped = 0

  constructor(options: SpanExporterOptions) {
    this.#options = options
    this.#address = `${options.url.replace(/\/+$/, '')}/v1/traces`
  }

  add(span: Span): void {
    if (this.#waiting.length >= waitingMax) {
      this.dropped += 1
      return
    }
    this.#waiting.push(span)
    if (this.#isPlanned) return
    this.#isPlanned = true
    setTimeout(() => {
      this.#isPlanned = false
      void this.flush()
    }, flushMs).unref()
  }

  /** Resolves when everything that waits was sent or dropped. */
  async flush(): Promise<void> {
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined))
    await this.#sending
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, batchMax)
      this.#waiting = this.#waiting.slice(batchMax)
      try {
        await this.#send(batch)
        this.exported += batch.length
        this.#isFailing = false
      } catch (error) {
        this.dropped += batch.length
        // Only the first of several failures is reported.
        if (!this.#isFailing) this.#options.onFailure((error as Error).message)
        this.#isFailing = true
      }
    }
  }

  async #send(batch: readonly Span[]): Promise<void> {
    const response = await fetch(this.#address, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(this.#requestOf(batch)),
      signal: AbortSignal.timeout(answerMsMax),
    })
    await response.arrayBuffer()
    if (!response.ok) throw new Error(`the collector answered ${response.status}`)
  }

  #requestOf(batch: readonly Span[]) {
    const { node, version } = this.#options
    const attributes = { 'service.name': 'rouse', 'service.instance.id': node }
    const spans = batch.map(toOtlp)
    const scopeSpans = [{ scope: { name: 'rouse', version }, spans }]
    return { resourceSpans: [{ resource: { attributes: toAttributes(attributes) }, scopeSpans }] }
  }
}

/** The numbers of the protocol. */
const kinds: Readonly<Record<Span['kind'], number>> = { internal: 1, producer: 4, consumer: 5 }

function toOtlp({ kind, fromMs, toMs, attributes, ...ids }: Span) {
  return {
    ...ids,
    kind: kinds[kind],
    startTimeUnixNano: nanoseconds(fromMs),
    endTimeUnixNano: nanoseconds(Math.max(fromMs, toMs)),
    attributes: toAttributes(attributes),
  }
}

function toAttributes(attributes: Readonly<Record<string, string | number>>) {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'string' ? { stringValue: value } : { intValue: String(value) },
  }))
}

function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms * 1_000)) * 1_000n)
}
