// The spans of a node: a push, each delivery and each ack of a message that belongs to a sampled trace. A message keeps
// its `traceparent` in its headers, from the push to the delivery.
import { randomBytes } from 'node:crypto'
import { shownGroup } from '@rouse/protocol'
import type { Lease, NewMessage } from '@rouse/storage'
import type { Clock } from '../../clock.ts'
import { BoundedMap } from '../bounded-map.ts'
import type { SpanExporter } from './span-exporter.ts'
import {
  readTraceParent,
  type TraceParent,
  traceOfHeaders,
  withTraceParent,
  writeTraceParent,
} from './traceparent.ts'

/** Deliveries whose ack is awaited. */
const openMax = 5_000

interface Delivered extends TraceParent {
  readonly queue: string
}

export class MessageSpans {
  /** Without this, `delivered` and `acked` do nothing, and need not be called. */
  readonly isExporting: boolean
  /** Undefined: spans are not exported, but traces are passed on. */
  readonly #exporter: SpanExporter | undefined
  readonly #clock: Clock
  readonly #open = new BoundedMap<string, Delivered>(openMax)

  constructor(exporter: SpanExporter | undefined, clock: Clock) {
    this.isExporting = exporter !== undefined
    this.#exporter = exporter
    this.#clock = clock
  }

  get counts(): { readonly exported: number; readonly dropped: number } {
    const { exported = 0, dropped = 0 } = this.#exporter ?? {}
    return { exported, dropped }
  }

  /** Gives the messages of a push the trace of the request. The returned function ends the span of the push. */
  push(
    items: NewMessage[],
    header: unknown,
  ): { readonly items: NewMessage[]; readonly end: () => void } {
    const parent = header === undefined ? undefined : readTraceParent(header)
    if (parent === undefined) return { items, end: () => {} }
    const exporter = parent.isSampled ? this.#exporter : undefined
    const own = exporter === undefined ? parent : { ...parent, spanId: newSpanId() }
    const traceparent = writeTraceParent(own)
    const fromMs = this.#clock.wallMs()
    const traced = items.map((item) => {
      return { ...item, headers: withTraceParent(item.headers, traceparent) }
    })
    const end = (): void => {
      const queue = items[0]?.queue ?? ''
      exporter?.add({
        traceId: own.traceId,
        spanId: own.spanId,
        parentSpanId: parent.spanId,
        name: `push ${queue}`,
        kind: 'producer',
        fromMs,
        toMs: this.#clock.wallMs(),
        attributes: {
          ...attributesOf('send', queue),
          'messaging.batch.message_count': items.length,
        },
      })
    }
    return { items: traced, end }
  }

  delivered(leases: readonly Lease[], group: string, fromMs: number): void {
    const exporter = this.#exporter
    if (exporter === undefined) return
    for (const lease of leases) {
      for (const { id, seq, headers } of lease.messages) {
        const parent = traceOfHeaders(headers)
        if (parent?.isSampled !== true) continue
        const spanId = newSpanId()
        const { queue, leaseId, partitionId, attempt } = lease
        this.#open.set(keyOf(leaseId, partitionId, seq), { ...parent, spanId, queue })
        exporter.add({
          traceId: parent.traceId,
          spanId,
          parentSpanId: parent.spanId,
          name: `deliver ${queue}`,
          kind: 'consumer',
          fromMs,
          toMs: this.#clock.wallMs(),
          attributes: {
            ...attributesOf('receive', queue),
            'messaging.message.id': id,
            'messaging.consumer.group.name': shownGroup(group),
            'rouse.attempt': attempt,
          },
        })
      }
    }
  }

  acked(
    { leaseId, partitionId, seq }: { leaseId: string; partitionId: string; seq: number },
    status: string,
    fromMs: number,
  ): void {
    if (this.#open.size === 0) return
    const key = keyOf(leaseId, partitionId, seq)
    const delivered = this.#open.get(key)
    if (delivered === undefined) return
    this.#open.delete(key)
    const { traceId, spanId, queue } = delivered
    this.#exporter?.add({
      traceId,
      spanId: newSpanId(),
      parentSpanId: spanId,
      name: `ack ${queue}`,
      kind: 'internal',
      fromMs,
      toMs: this.#clock.wallMs(),
      attributes: { ...attributesOf('settle', queue), 'rouse.status': status },
    })
  }

  async stop(): Promise<void> {
    await this.#exporter?.flush()
  }
}

function attributesOf(operation: string, queue: string) {
  return {
    'messaging.system': 'rouse',
    'messaging.operation.type': operation,
    'messaging.destination.name': queue,
  }
}

function keyOf(leaseId: string, partitionId: string, seq: number): string {
  return `${leaseId}/${partitionId}/${seq}`
}

function newSpanId(): string {
  return randomBytes(8).toString('hex')
}
