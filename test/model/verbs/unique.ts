// Pushes with unique keys.
import fc from 'fast-check'
import { sizesOf } from '../operating.ts'
import { find, type Holding, holdingOf } from '../unique.ts'
import {
  type Deed,
  must,
  mustAnswer,
  nameOf,
  partitionNames,
  queueNames,
  type Scene,
  settleMoved,
  verb,
} from '../verb.ts'
import { partitionFor, type Queue } from '../world.ts'
import { type Item, numbered, plainItem, pushed } from './producing.ts'

interface Unique {
  readonly queue: string
  readonly partition: string | undefined
  readonly key: string
  readonly scope: 'queue' | 'partition'
  readonly windowMs: number | undefined
  readonly onConflict: 'ignore' | 'replace' | 'reject'
  readonly delayMs: number | undefined
  readonly headers: string | undefined
}

export const plainUnique: Unique = {
  queue: 'a',
  partition: undefined,
  key: 'u',
  scope: 'queue',
  windowMs: undefined,
  onConflict: 'ignore',
  delayMs: undefined,
  headers: undefined,
}

const seldom = <Value>(...values: Value[]) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, fc.constantFrom(...values))

export const unique = [
  verb({
    name: 'push unique',
    weight: 10,
    args: fc.record({
      queue: fc.constantFrom(...queueNames),
      partition: fc.option(fc.constantFrom(...partitionNames), { nil: undefined, freq: 1 }),
      key: fc.constantFrom('u', 'u', 'v'),
      scope: fc.constantFrom('queue', 'queue', 'partition'),
      windowMs: seldom(1_000, 60_000),
      onConflict: fc.constantFrom('ignore', 'replace', 'replace', 'reject'),
      delayMs: seldom(1_000, 60_000),
      headers: seldom('{"u":1}'),
    }),
    run: pushUnique,
  }),
]

async function pushUnique(scene: Scene, drawn: Unique): Promise<Deed> {
  const { world, product } = scene
  const { queue, partition, delayMs, headers } = drawn
  const item = numbered({ ...plainItem, queue, partition, delayMs, headers })
  const known = world.queues.get(nameOf(scene, queue))
  const place = placeOf(known, drawn)
  const holder = known?.uniques.get(place)
  const holding: Holding =
    known === undefined || holder === undefined
      ? { isHeld: false }
      : holdingOf(world, known, holder, await recentGroups(scene, known))
  const body = `{"items":[${itemText(scene, item, drawn)}]}`
  const answer = await product.call('POST', '/push', body)
  if (holding.isHeld && drawn.onConflict === 'reject') {
    mustAnswer(answer, 409, 'unique_conflict')
    return { did: `push unique ${body}: refused`, effect: 'refused' }
  }
  const status = expected(holding, drawn.onConflict)
  if (status.has('stored') && answer.status === 429 && known !== undefined) {
    const { maxSize } = known.options
    must(maxSize > 0 && sizesOf(world, known).most + 1 > maxSize, `full: ${answer.text}`)
    return { did: `push unique ${body}: queue full`, effect: 'refused' }
  }
  mustAnswer(answer, 201)
  const got = answer.body[0] as { status: string; id: string }
  const kind = got.status === 'queued' || got.status === 'scheduled' ? 'stored' : got.status
  must(status.has(kind), `the status is ${got.status} instead of ${[...status].join(' or ')}`)
  if (kind === 'stored') {
    const { delayedProcessing } = known?.options ?? { delayedProcessing: 0 }
    const waitMs = Math.max(delayMs ?? 0, delayedProcessing * 1_000)
    const fate = { status: waitMs > 0 ? 'scheduled' : 'queued', dueAt: world.now + waitMs } as const
    pushed(scene, [item], [fate], answer.body)
    const { windowMs } = drawn
    const expiresAt = windowMs === undefined ? undefined : world.now + windowMs
    const stored = world.queueOf(nameOf(scene, queue))
    stored.uniques.set(placeOf(stored, drawn), { id: got.id, expiresAt })
  } else {
    must(got.id === holder?.id, `the holder is ${got.id} instead of ${holder?.id}`)
    if (kind === 'replaced') replace(scene, known as Queue, got.id, item)
    await settleMoved(scene)
  }
  return { did: `push unique ${body}: ${got.status}`, effect: 'done' }
}

function expected(holding: Holding, onConflict: Unique['onConflict']): Set<string> {
  if (!holding.isHeld) return new Set(['stored'])
  if (onConflict !== 'replace') return new Set(['duplicate'])
  if (holding.where === 'scheduled' || holding.started === false) return new Set(['replaced'])
  return new Set(holding.started ? ['stored'] : ['stored', 'replaced'])
}

/** The scope and the key. */
function placeOf(queue: Queue | undefined, { scope, partition, key }: Unique): string {
  const name =
    scope === 'queue' ? null : partitionFor(queue?.options.ordering ?? 'keyed', partition)
  return JSON.stringify([name, key])
}

/** The groups that hold keys. When a group was seen is known to the minute only, so the tables decide. */
async function recentGroups({ product }: Scene, queue: Queue): Promise<Set<string>> {
  const rows = await product.sql<{ name: string; recent: boolean }>(
    `select g.name, g.last_seen_at >= max(g.last_seen_at) over () - interval '1 hour' as recent
     from rouse.groups g join rouse.queues q on q.id = g.queue_id where q.name = $1`,
    [queue.name],
  )
  return new Set(rows.filter(({ recent }) => recent).map(({ name }) => name))
}

function replace({ world }: Scene, queue: Queue, id: string, item: Item): void {
  const content = { payload: item.payload, headers: item.headers ?? null }
  const waitMs = Math.max(item.delayMs ?? 0, queue.options.delayedProcessing * 1_000)
  world.scheduled = world.scheduled.map((one) =>
    one.message.id === id
      ? { ...one, dueAt: world.now + waitMs, message: { ...one.message, ...content } }
      : one,
  )
  const logged = find(queue, id)
  if (logged !== undefined) {
    logged.partition.log.set(logged.message.seq, { ...logged.message, ...content })
  }
}

function itemText(scene: Scene, item: Item, drawn: Unique): string {
  const { key, scope, windowMs, onConflict } = drawn
  const until = windowMs === undefined ? 'completed' : { windowMs }
  const fields = {
    queue: nameOf(scene, item.queue),
    partition: item.partition,
    delayMs: item.delayMs,
    unique: { key, scope, until, onConflict },
  }
  const headers = item.headers === undefined ? '' : `,"headers":${item.headers}`
  return `${JSON.stringify(fields).slice(0, -1)},"payload":${item.payload}${headers}}`
}
