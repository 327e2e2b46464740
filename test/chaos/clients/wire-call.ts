// Turns a request of the HTTP API into its record: before it is sent, and when its response is known.
import { crc32 } from 'node:zlib'
import type { TransportRequest } from '@rouse/client'
import { monotonicMs } from '../history/clock.ts'
import type {
  AckedItem,
  AckRecord,
  CallRecord,
  OperatorRecord,
  PoppedMessage,
  PopRecord,
  PushedItem,
  PushRecord,
} from '../history/records.ts'
import type { HeldMessages } from './held-messages.ts'

type Unfinished<Kind extends CallRecord> = Kind extends CallRecord
  ? Omit<Kind, 'process' | 'workload' | 'start' | 'end' | 'outcome' | 'status' | 'code'>
  : never

/** A record without the fields that are known only at its end. */
export type WireCall = Unfinished<CallRecord>

/** The payload of every message of the workloads: its value, and its amount if the workload checks a sum. */
export interface Payload {
  readonly v: string
  readonly amount?: number
  /** Padding for large messages, and its checksum. */
  readonly pad?: string
  readonly sum?: number
}

/** Either the receipt, or the three ids. */
interface AckText {
  readonly receipt?: string
  readonly leaseId?: string
  readonly transactionId?: string
  readonly partitionId?: string
  readonly status?: AckedItem['status']
}

interface PushText {
  readonly queue: string
  readonly partition?: string
  readonly payload: Payload
  readonly transactionId?: string
  readonly delayMs?: number
  readonly unique?: unknown
}

interface Operation extends AckText {
  readonly type: 'ack' | 'push'
  readonly consumerGroup?: string
  readonly items?: readonly PushText[]
}

interface MessageText extends Omit<PoppedMessage, 'seq' | 'value' | 'amount' | 'partition'> {
  /** Null for a message without a partition. */
  readonly partition: string | null
  readonly seq: number
  readonly data: Payload
}

const queueMode = '__QUEUE_MODE__'

/** Padding with its checksum. */
export function padded(pad: string): Required<Pick<Payload, 'pad' | 'sum'>> {
  return { pad, sum: crc32(pad) }
}

/** Undefined for requests that are not about messages. */
export function readCall(
  { method, url, body }: Pick<TransportRequest, 'method' | 'url' | 'body'>,
  held: HeldMessages,
  leaseMs: number,
): WireCall | undefined {
  const [, verb = '', ...rest] = /^\/api\/v1\/([^/]+)(?:\/(.*))?$/.exec(url.pathname) ?? []
  const path = (rest[0] ?? '').split('/').map(decodeURIComponent)
  const json = body === undefined ? {} : (JSON.parse(body) as Record<string, unknown>)
  switch (verb) {
    case 'push':
      return { kind: 'push', by: 'http', items: toItems(json.items as PushText[]) }
    case 'pop':
      return readPop(path[1], method === 'GET' ? fromQuery(url) : json, held, leaseMs)
    case 'ack':
      return readAck(json, held)
    case 'transaction':
      return readTransaction(json.operations as Operation[], held)
    case 'lease':
      return method === 'DELETE'
        ? { kind: 'release', receipt: held.receiptIn(path[0] ?? '') }
        : {
            kind: 'extend',
            receipt: held.receiptIn(path[0] ?? ''),
            seconds: Number(json.seconds ?? 60),
          }
    case 'messages':
      return method === 'DELETE' ? { kind: 'cancel', id: path[0] ?? '' } : undefined
    case 'queues':
      return path[1] === 'purge' ? { kind: 'purge', queue: path[0] ?? '' } : undefined
    case 'consumer-groups':
      return path[3] === 'seek' ? readSeek(path, json) : undefined
    default:
      return undefined
  }
}

/** Adds the result. `json` is undefined if there was no response, or if the response was not ok. */
export function withAnswer(call: WireCall, json: unknown, refusedAsStale: boolean): WireCall {
  switch (call.kind) {
    case 'push':
      return json === undefined ? call : { ...call, items: withResults(call.items, json) }
    case 'pop':
      return json === undefined ? call : withMessages(call, json)
    case 'ack':
      return withVerdict(call, json, refusedAsStale)
    case 'extend':
      return json === undefined ? call : { ...call, ...lastingAs(json) }
    case 'release':
    case 'purge':
    case 'seek':
    case 'redrive':
    case 'subscribe':
    case 'cancel':
      return call
  }
}

function lastingAs(json: unknown): { readonly lastsMs: number } {
  return { lastsMs: (json as { remainingMs: number }).remainingMs }
}

function fromQuery({ searchParams }: URL): Record<string, unknown> {
  const query = Object.fromEntries(searchParams)
  return { ...query, wait: query.wait === 'true' }
}

function readPop(
  queue: string | undefined,
  pop: Record<string, unknown>,
  held: HeldMessages,
  leaseMs: number,
): Unfinished<PopRecord> {
  const acks = (pop.acks ?? []) as AckText[]
  return {
    kind: 'pop',
    queue: queue ?? sourceOf(pop),
    group: (pop.consumerGroup as string | undefined) ?? queueMode,
    waitMs: pop.wait === true ? Number(pop.timeout ?? 30_000) : 0,
    leaseMs: pop.leaseSeconds === undefined ? leaseMs : Number(pop.leaseSeconds) * 1_000,
    messages: [],
    acks: acks.map((ack) => toAcked(ack, held)),
  }
}

/** The name of the source of a pop, as in QueueRecord.sources. */
function sourceOf({ namespace, task }: Record<string, unknown>): string {
  return typeof task === 'string' ? `task ${task}` : `namespace ${namespace as string}`
}

function readSeek(
  [group = '', , queue = '']: readonly string[],
  { timestamp }: Record<string, unknown>,
): Unfinished<OperatorRecord> {
  const from =
    typeof timestamp === 'string' ? monotonicMs() - (Date.now() - Date.parse(timestamp)) : 'new'
  return { kind: 'seek', queue, group, from }
}

function readAck(json: Record<string, unknown>, held: HeldMessages): Unfinished<AckRecord> {
  const list = json.acknowledgments as AckText[] | undefined
  const status = json.status as AckedItem['status'] | undefined
  const single = json as unknown as AckText
  const acks =
    list !== undefined
      ? list.map((ack) => toAcked(ack, held))
      : single.receipt !== undefined || single.transactionId !== undefined
        ? [toAcked(single, held)]
        : held
            .leaseOf(single.leaseId ?? '')
            .map((message) => ({ ...message, status: status ?? 'completed' }))
  const named = json.consumerGroup as string | undefined
  return { kind: 'ack', group: named ?? groupOf(acks, held), acks }
}

function readTransaction(
  operations: readonly Operation[],
  held: HeldMessages,
): Unfinished<AckRecord> {
  const acks = operations.filter(({ type }) => type === 'ack')
  const acked = acks.map((ack) => toAcked(ack, held))
  return {
    kind: 'ack',
    group: acks[0]?.consumerGroup ?? groupOf(acked, held),
    acks: acked,
    pushes: toItems(operations.flatMap(({ items = [] }) => items)),
  }
}

function groupOf([first]: readonly AckedItem[], held: HeldMessages): string {
  return (first === undefined ? undefined : held.groupOf(first.receipt)) ?? queueMode
}

function toAcked(ack: AckText, held: HeldMessages): AckedItem {
  const { status = 'completed' } = ack
  const named = held.find(ack) ?? { receipt: '', transactionId: '', partitionId: '', value: '' }
  return { ...named, status }
}

function toItems(items: readonly PushText[]): PushedItem[] {
  return items.map(({ queue, partition = 'Default', payload, transactionId, delayMs, unique }) => ({
    queue,
    partition,
    value: payload.v,
    // With a unique key, a duplicate may be a duplicate of another message, and does not prove that this one
    // is stored.
    ...(transactionId === undefined || unique !== undefined ? {} : { key: transactionId }),
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(payload.amount === undefined ? {} : { amount: payload.amount }),
  }))
}

function withResults(items: readonly PushedItem[], json: unknown): PushRecord['items'] {
  const results = json as { status: 'queued' | 'duplicate' | 'scheduled'; message_id: string }[]
  return items.map((item, i) => {
    const result = results[i]
    if (result === undefined) return item
    return { ...item, result: { status: result.status, id: result.message_id } }
  })
}

function withMessages(pop: Unfinished<PopRecord>, json: unknown): Unfinished<PopRecord> {
  const { messages = [], acks = [] } = json as {
    messages?: readonly MessageText[]
    acks?: readonly { success: boolean }[]
  }
  return {
    ...pop,
    messages: messages.map(
      ({
        queue,
        partition,
        partitionId,
        data,
        id,
        transactionId,
        seq,
        attempt,
        receipt,
        leaseId,
      }) => ({
        queue,
        partition: partition ?? 'Default',
        partitionId,
        value: valueOf(data),
        id,
        transactionId,
        seq: String(seq),
        attempt,
        receipt,
        leaseId,
        ...(data.amount === undefined ? {} : { amount: data.amount }),
      }),
    ),
    acks: pop.acks.map((ack, i) => withSuccess(ack, acks[i]?.success)),
  }
}

/** A damaged message gets a value that was never pushed, so that the checkers report it. */
function valueOf({ v, pad, sum }: Payload): string {
  return pad === undefined || crc32(pad) === sum ? v : `${v}, damaged`
}

/**
 * The response to a list of acks has a result per item. For a single ack, a whole lease and a transaction,
 * the HTTP status is the result.
 */
function withVerdict(
  call: Unfinished<AckRecord>,
  json: unknown,
  refusedAsStale: boolean,
): Unfinished<AckRecord> {
  if (refusedAsStale) {
    return { ...call, acks: call.acks.map((ack) => withSuccess(ack, false)) }
  }
  if (json === undefined) return call
  if (call.pushes !== undefined) {
    const { results } = json as { results: { type: string; items?: unknown[] }[] }
    const pushed = results.flatMap(({ items = [] }) => items)
    return {
      ...call,
      acks: call.acks.map((ack) => withSuccess(ack, true)),
      pushes: withResults(call.pushes, pushed),
    }
  }
  const results = json as { success: boolean }[]
  const ofAll = results.length === 1 ? results[0]?.success : undefined
  const acks = call.acks.map((ack, i) => withSuccess(ack, results[i]?.success ?? ofAll))
  return { ...call, acks }
}

function withSuccess(ack: AckedItem, success: boolean | undefined): AckedItem {
  return success === undefined ? ack : { ...ack, success }
}
