// Pushes over HTTP, with every option of an item, and invalid ones.
import fc from 'fast-check'
import { sizesOf } from '../operating.ts'
import type { Answer } from '../product.ts'
import {
  type Deed,
  must,
  mustAnswer,
  nameOf,
  partitionNames,
  queueNames,
  type Scene,
  verb,
} from '../verb.ts'
import {
  defaults,
  type Message,
  partitionFor,
  type Queue,
  type Scheduled,
  shown,
  type World,
} from '../world.ts'

export interface Item {
  readonly queue: string
  readonly partition: string | undefined
  readonly key: string | undefined
  readonly payload: string
  readonly traceId: string | undefined
  readonly headers: string | undefined
  readonly delayMs: number | undefined
  /** Milliseconds from now. */
  readonly runIn: number | undefined
  readonly priority?: number | undefined
  readonly retryLimit?: number | undefined
  readonly retryBackoffMs?: readonly number[] | undefined
  readonly ttlMs?: number | undefined
}

const keys = ['k', 'l', '1849302847102938475'] as const
/** `#` is a different number for each message. Numbers must keep every digit. */
const payloads = [
  '{"n":#}',
  '{"n":#,"id":1849302847102938475}',
  '[#,1e400]',
  '"# ü"',
  '#.00000000000000000001',
] as const
const often = <Value>(arbitrary: fc.Arbitrary<Value>, none: number) =>
  fc.option(arbitrary, { nil: undefined, freq: none })

export const items = fc.record({
  queue: fc.constantFrom(...queueNames),
  partition: often(fc.constantFrom(...partitionNames), 1),
  key: fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, fc.constantFrom(...keys)),
  payload: fc.constantFrom(...payloads),
  traceId: fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, fc.constant('trace')),
  headers: fc.oneof(
    { weight: 4, arbitrary: fc.constant(undefined) },
    fc.constant('{"h":12345678901234567890}'),
  ),
  delayMs: fc.oneof(
    { weight: 5, arbitrary: fc.constant(undefined) },
    fc.constantFrom(0, 1_000, 60_000),
  ),
  runIn: fc.oneof(
    { weight: 8, arbitrary: fc.constant(undefined) },
    fc.constantFrom(-1_000, 30_000),
  ),
  priority: often(fc.constantFrom(0, 1, 5, 9), 4),
  retryLimit: often(fc.constantFrom(0, 1), 6),
  retryBackoffMs: often(fc.constantFrom([0], [2_000, 5_000]), 6),
  ttlMs: often(fc.constantFrom(10_000, 100_000), 6),
})

export const plainItem: Item = {
  queue: 'a',
  partition: undefined,
  key: undefined,
  payload: payloads[0],
  traceId: undefined,
  headers: undefined,
  delayMs: undefined,
  runIn: undefined,
}

let numbers = 0

/** Only messages without a partition may have a priority. */
export function numbered(item: Item): Item {
  numbers += 1
  const priority = item.partition === undefined ? item.priority : undefined
  return { ...item, priority, payload: item.payload.replace('#', String(numbers)) }
}

/** Whether a queue of the items keeps the order of all messages, and an item has a priority. */
export function isRefused(scene: Scene, given: readonly Item[]): boolean {
  return given.some(
    ({ queue, priority = 0 }) =>
      priority > 0 &&
      scene.world.queues.get(nameOf(scene, queue))?.options.ordering === 'partition',
  )
}

export function itemText(scene: Scene, item: Item): string {
  const fields = {
    queue: nameOf(scene, item.queue),
    partition: item.partition,
    transactionId: item.key,
    traceId: item.traceId,
    delayMs: item.runIn === undefined ? item.delayMs : undefined,
    runAt:
      item.runIn === undefined ? undefined : new Date(scene.world.now + item.runIn).toISOString(),
    priority: item.priority,
    retryLimit: item.retryLimit,
    retryBackoffMs: item.retryBackoffMs,
    ttlMs: item.ttlMs,
  }
  const headers = item.headers === undefined ? '' : `,"headers":${item.headers}`
  return `${JSON.stringify(fields).slice(0, -1)},"payload":${item.payload}${headers}}`
}

export function pushText(scene: Scene, given: readonly Item[]): string {
  return `"items":[${given.map((item) => itemText(scene, item)).join(',')}]`
}

export type Fate =
  | { readonly status: 'queued' | 'scheduled'; readonly dueAt: number }
  /**
   * `original` is the id of an existing message with the same key, or the index of an earlier item of the
   * call.
   */
  | { readonly status: 'duplicate'; readonly original: string | number }

export interface Fates {
  readonly fates: readonly Fate[]
  /** Whether all items certainly fit into their queues (`mustFit`), and whether they may fit (`mayFit`). */
  readonly mustFit: boolean
  readonly mayFit: boolean
}

export function fatesOf({ world, prefix }: Scene, given: readonly Item[]): Fates {
  const first = new Map<string, number>()
  const fates = given.map((item, i) => fateOf(world, `${prefix}${item.queue}`, item, first, i))
  let [mustFit, mayFit] = [true, true]
  for (const queue of world.queues.values()) {
    const { maxSize } = queue.options
    const adding = given.filter(
      (item, i) => prefix + item.queue === queue.name && fates[i]?.status !== 'duplicate',
    ).length
    if (maxSize === 0 || adding === 0) continue
    const { least, most } = sizesOf(world, queue)
    mustFit &&= most + adding <= maxSize
    mayFit &&= least + adding <= maxSize
  }
  return { fates, mustFit, mayFit }
}

/** Returns false if a queue was full or refused a priority, as expected. Otherwise applies the push. */
function pushedOrFull(scene: Scene, given: readonly Item[], answer: Answer): boolean {
  if (isRefused(scene, given)) {
    mustAnswer(answer, 400)
    return false
  }
  const { fates, mustFit, mayFit } = fatesOf(scene, given)
  if (!mayFit || (answer.status === 429 && !mustFit)) {
    mustAnswer(answer, 429, 'queue_full')
    return false
  }
  mustAnswer(answer, 201)
  pushed(scene, given, fates, answer.body)
  return true
}

function fateOf(
  world: World,
  name: string,
  item: Item,
  first: Map<string, number>,
  i: number,
): Fate {
  const queue = world.queues.get(name)
  const { ordering } = queue?.options ?? defaults
  const partitionName = partitionFor(ordering, item.partition, item.priority)
  const partition = queue?.partitions.get(partitionName)
  const window = queue?.options.dedupWindowSeconds ?? 3_600
  if (item.key !== undefined && window > 0) {
    const known = queue && partition && world.originalOf(queue, partition, item.key)
    const place = JSON.stringify([name, partitionName, item.key])
    const earlier = first.get(place)
    if (known !== undefined || earlier !== undefined) {
      return { status: 'duplicate', original: known ?? (earlier as number) }
    }
    first.set(place, i)
  }
  const queueDelayMs = (queue?.options.delayedProcessing ?? 0) * 1_000
  const delayMs = item.runIn ?? Math.max(item.delayMs ?? 0, queueDelayMs)
  const dueAt = world.now + delayMs
  return { status: delayMs > 0 ? 'scheduled' : 'queued', dueAt }
}

interface Pushed {
  readonly status: string
  readonly partition: string | null
  readonly message_id: string
}

/** Checks the response to a push, and applies it to the model. */
export function pushed(
  scene: Scene,
  given: readonly Item[],
  fates: readonly Fate[],
  answer: Pushed[],
): void {
  const { world } = scene
  must(answer.length === given.length, `${answer.length} results for ${given.length} items`)
  for (const [i, item] of given.entries()) {
    const fate = fates[i] as Fate
    const { status, message_id: id } = answer[i] as Pushed
    must(status === fate.status, `item ${i} is ${status} instead of ${fate.status}`)
    const queue = world.queueOf(nameOf(scene, item.queue))
    const name = partitionFor(queue.options.ordering, item.partition, item.priority)
    const partition = world.partitionOf(queue, name)
    must(
      answer[i]?.partition === shown(partition),
      `item ${i} is in ${answer[i]?.partition} instead of ${shown(partition)}`,
    )
    if (fate.status === 'duplicate') {
      const original =
        typeof fate.original === 'string' ? fate.original : answer[fate.original]?.message_id
      must(id === original, `item ${i} is a duplicate of ${id} instead of ${original}`)
      continue
    }
    const key = item.key ?? keyOf(fate.status, id)
    const message = messageOf(item, id, key)
    const { dedupWindowSeconds } = queue.options
    if (fate.status === 'queued') world.append(partition, message, dedupWindowSeconds)
    else {
      world.scheduled.push(scheduledOf(world, queue, partition.name, fate.dueAt, message))
      if (item.key !== undefined) world.remember(partition, item.key, id, dedupWindowSeconds)
    }
  }
}

/** A delayed message is identified by its id, because it had no seq when its push was answered. */
function keyOf(status: string, id: string): string | undefined {
  return status === 'scheduled' ? id : undefined
}

export function messageOf(
  item: Item,
  id: string,
  key: string | undefined,
): Omit<Message, 'seq' | 'createdAt'> {
  return {
    id,
    key,
    payload: item.payload,
    headers: item.headers ?? null,
    traceId: item.traceId ?? null,
    retryLimit: item.retryLimit,
    retryBackoffMs: item.retryBackoffMs,
    ttlMs: item.ttlMs,
  }
}

function scheduledOf(
  world: World,
  queue: Queue,
  partition: string,
  dueAt: number,
  message: Scheduled['message'],
): Scheduled {
  return {
    queue: queue.name,
    partition,
    dueAt,
    order: world.nextOrder(),
    origin: 'broker',
    message,
  }
}

export async function push(scene: Scene, drawn: readonly Item[]): Promise<NonNullable<Deed>> {
  const given = drawn.map(numbered)
  const body = `{${pushText(scene, given)}}`
  const answer = await scene.product.call('POST', '/push', body)
  if (!pushedOrFull(scene, given, answer)) {
    return { did: `push ${body}: refused`, effect: 'refused' }
  }
  const statuses = (answer.body as Pushed[]).map(({ status }) => status)
  return { did: `push ${body}: ${statuses.join(' ')}`, effect: 'done' }
}

export const producing = [
  verb({
    name: 'push',
    weight: 22,
    args: fc.array(items, { minLength: 1, maxLength: 4 }),
    run: push,
  }),
  verb({
    name: 'push again',
    weight: 2,
    args: fc.record({
      items: fc.array(items, { minLength: 1, maxLength: 2 }),
      key: fc.constantFrom(undefined, ...keys),
      afterMs: fc.constantFrom(0, 0, 0, 5_000_000),
    }),
    async run(scene, { items: drawn, key, afterMs }): Promise<Deed> {
      const given = drawn.map((item) => numbered({ ...item, key: item.key ?? key }))
      const body = `{${pushText(scene, given)},"repeatAfterMs":${afterMs}}`
      const answer = await scene.product.call('POST', '/push', body)
      const isForgotten = given.some((item) => {
        const queue = scene.world.queues.get(nameOf(scene, item.queue))
        const windowMs = queue && queue.options.dedupWindowSeconds * 1_000
        return item.key === undefined || (windowMs !== undefined && windowMs < afterMs + 5_000)
      })
      if (isForgotten) mustAnswer(answer, 409, 'repeat_too_late')
      else if (pushedOrFull(scene, given, answer))
        return { did: `push again ${body}`, effect: 'done' }
      return { did: `push again ${body}: refused`, effect: 'refused' }
    },
  }),
  verb({
    name: 'push numbers as names',
    weight: 2,
    args: fc.record({
      field: fc.constantFrom('queue', 'partition', 'transactionId', 'traceId'),
      number: fc.constantFrom(
        '7',
        '1849302847102938475',
        '123456789012345678901234567890',
        '1e400',
      ),
    }),
    async run(scene, { field, number }): Promise<Deed> {
      const name = JSON.stringify(nameOf(scene, 'a'))
      const fields = field === 'queue' ? '' : `"queue":${name},`
      const body = `{"items":[{${fields}"${field}":${number},"payload":${number}}]}`
      const answer = await scene.product.call('POST', '/push', body)
      mustAnswer(answer, 400)
      must(!answer.text.includes('rouse-number'), `an internal marker shows in ${answer.text}`)
      return { did: `push ${body}: refused`, effect: 'refused' }
    },
  }),
]
