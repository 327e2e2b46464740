// What operators do: options, seeks, purges, pauses, deletions.
import fc from 'fast-check'
import { deleteGroup, deleteQueue, purge, seek, subscribe } from '../operating.ts'
import { changeRates } from '../rates.ts'
import {
  type Deed,
  groupNames,
  must,
  mustAnswer,
  nameOf,
  partitionNames,
  pick,
  queueNames,
  type Scene,
  settle,
  verb,
} from '../verb.ts'
import {
  ageMsMax,
  defaults,
  isExpired,
  isOrdered,
  type Options,
  type Queue,
  type World,
} from '../world.ts'

const queue = fc.constantFrom(...queueNames)
const group = fc.constantFrom(...groupNames)
/** If set, selects one of the existing targets, if there are any. */
const there = fc.option(fc.nat(20), { nil: undefined, freq: 4 })
const places = fc.record({ queue, there })
const groupPlaces = fc.record({ queue, group, there })

function queueAt({ world }: Scene, drawn: { queue: string; there: number | undefined }): string {
  const known = drawn.there === undefined ? undefined : pick([...world.queues.keys()], drawn.there)
  return known?.slice(-1) ?? drawn.queue
}

interface GroupPlace {
  readonly queue: string
  readonly group: string
}

function groupAt({ world }: Scene, drawn: GroupPlace & { there: number | undefined }): GroupPlace {
  const known = [...world.queues.values()].flatMap(({ name, groups }) =>
    [...groups].map((one) => ({ queue: name.slice(-1), group: one })),
  )
  return (drawn.there === undefined ? undefined : pick(known, drawn.there)) ?? drawn
}

/** One value of one option; null: its default. */
const changes: fc.Arbitrary<Partial<Record<keyof Options, unknown>>> = fc.oneof(
  ...Object.entries({
    leaseTime: [1, 30, 600],
    retryLimit: [0, 1, 2, null],
    retryBackoffMs: [[0], [1_000, 60_000], null],
    // With all fields, and in the order in which PostgreSQL returns them.
    retryBackoff: [
      { type: 'exponential', maxMs: 50_000, baseMs: 1_000, factor: 7, jitter: false },
      { type: 'exponential', maxMs: 40_000, baseMs: 40_000, factor: 1, jitter: false },
      null,
    ],
    deadLetterQueue: [false, true],
    deadLetterTo: ['a', 'b', 'c', 'c', null],
    ordering: ['none', 'partition', 'partition', 'keyed', null],
    onFailure: ['skip', 'skip', 'hold', null],
    delayedProcessing: [5, null],
    windowBuffer: [10, null],
    ttl: [20, 4_000, null],
    retentionEnabled: [false, true],
    retentionSeconds: [50, 5_000, null],
    completedRetentionSeconds: [-1, 1, 1, 100, null],
    maxWaitTimeSeconds: [30, null],
    maxSize: [5, null],
    priority: [1, -1, null],
    maxInFlight: [1, 3, null],
    maxInFlightPerPartition: [1, 2, null],
    // A delivery costs a whole number of milliseconds.
    rate: [{ limit: 2, perMs: 10_000 }, { limit: 5, perMs: 40_000 }, null],
    partitionRate: [{ limit: 1, perMs: 5_000 }, { limit: 4, perMs: 300_000 }, null],
    dedupWindowSeconds: [0, 10, null],
    history: ['all', 'all', null],
  }).map(([name, values]) =>
    fc.constantFrom<unknown>(...values).map((value) => ({ [name]: value })),
  ),
)

export const operating = [
  verb({
    name: 'configure',
    weight: 7,
    args: fc.record({
      queue,
      options: fc
        .array(changes, { minLength: 1, maxLength: 2 })
        .map((list) => Object.assign({}, ...list) as Partial<Record<keyof Options, unknown>>),
      namespace: fc.constantFrom(undefined, undefined, 'n'),
      task: fc.constantFrom(undefined, undefined, 't'),
    }),
    run: configure,
  }),
  verb({
    name: 'seek',
    weight: 2,
    args: fc.record({
      place: groupPlaces,
      back: fc.constantFrom(undefined, 0, 30_000, 100_000_000),
      only: fc.constantFrom(undefined, undefined, ...partitionNames),
    }),
    async run(scene, { place, back, only }): Promise<Deed> {
      const args = { ...groupAt(scene, place), back }
      const { world, product, prefix } = scene
      const body =
        args.back === undefined
          ? { toEnd: true }
          : { timestamp: new Date(world.now - args.back).toISOString() }
      const part = only === undefined ? '' : `/partitions/${only}`
      const path = `/consumer-groups/${args.group}/queues/${nameOf(scene, args.queue)}${part}/seek`
      const answer = await product.call('POST', path, body)
      const found = world.queues.get(`${prefix}${args.queue}`)
      const partition = only === undefined ? undefined : found?.partitions.get(only)
      const did = `seek ${args.group} of ${args.queue}${part} to ${JSON.stringify(body)}`
      if (found === undefined || !found.groups.has(args.group)) {
        mustAnswer(answer, 404, 'not_found')
        return { did: `${did}: not found`, effect: 'refused' }
      }
      // The server looks for open transactions in ordered lanes before it looks up the partition, and for
      // those in unordered lanes afterwards.
      if (only !== undefined && partition === undefined && answer.status !== 409) {
        return notFound(answer, did)
      }
      if (isLocked(world, found, args.group)) return refusedByConsumer(answer, did)
      mustAnswer(answer, 200)
      const to = args.back === undefined ? 'end' : world.now - args.back
      seek(world, found, args.group, to, partition)
      return { did, effect: 'done' }
    },
  }),
  verb({
    name: 'subscribe',
    weight: 1,
    args: fc.record({ place: groupPlaces, from: fc.constantFrom('all', 'new', 'time') }),
    async run(scene, { place, from: begin }): Promise<Deed> {
      const args = { ...groupAt(scene, place), from: begin }
      const { world, product, prefix } = scene
      const time = new Date(world.now - 40_000).toISOString()
      const body =
        args.from === 'time' ? { subscriptionFrom: time } : { subscriptionMode: args.from }
      const path = `/consumer-groups/${args.group}/queues/${nameOf(scene, args.queue)}/subscription`
      const answer = await product.call('POST', path, body)
      const found = world.queues.get(`${prefix}${args.queue}`)
      const did = `subscribe ${args.group} of ${args.queue} ${JSON.stringify(body)}`
      if (found === undefined) {
        mustAnswer(answer, 404, 'not_found')
        return { did: `${did}: not found`, effect: 'refused' }
      }
      const from = args.from === 'all' ? 0 : args.from === 'new' ? world.now : world.now - 40_000
      if (!found.groups.has(args.group)) {
        mustAnswer(answer, 200)
        subscribe(found, args.group, args.from === 'all' ? 'all' : from)
      } else if (isLocked(world, found, args.group)) return refusedByConsumer(answer, did)
      else {
        mustAnswer(answer, 200)
        seek(world, found, args.group, args.from === 'new' ? 'end' : from)
      }
      return { did, effect: 'done' }
    },
  }),
  verb({
    name: 'purge',
    weight: 2,
    args: places,
    async run(scene, place): Promise<Deed> {
      const { world, product } = scene
      const name = queueAt(scene, place)
      const answer = await product.call('POST', `/queues/${nameOf(scene, name)}/purge`)
      const found = world.queues.get(nameOf(scene, name))
      if (found === undefined) return notFound(answer, `purge ${name}`)
      if (isLocked(world, found)) return refusedByConsumer(answer, `purge ${name}`)
      mustAnswer(answer, 200)
      const count = purge(world, found)
      must(answer.body.purged === count, `purged ${answer.body.purged} instead of ${count}`)
      await settle(scene)
      return { did: `purge ${name}: ${count}`, effect: 'done' }
    },
  }),
  verb({
    name: 'pause or resume',
    weight: 3,
    args: fc.record({ place: places, paused: fc.constantFrom(true, false, false) }),
    async run(scene, { place, paused }): Promise<Deed> {
      const name = queueAt(scene, place)
      const word = paused ? 'pause' : 'resume'
      const answer = await scene.product.call('POST', `/queues/${nameOf(scene, name)}/${word}`)
      const found = scene.world.queues.get(nameOf(scene, name))
      if (found === undefined) return notFound(answer, `${word} ${name}`)
      mustAnswer(answer, 200)
      found.paused = paused
      return { did: `${word} ${name}`, effect: 'done' }
    },
  }),
  verb({
    name: 'delete queue',
    weight: 1,
    args: places,
    async run(scene, place): Promise<Deed> {
      const { world, product } = scene
      const name = queueAt(scene, place)
      const answer = await product.call('DELETE', `/resources/queues/${nameOf(scene, name)}`)
      const found = world.queues.get(nameOf(scene, name))
      if (found === undefined) return notFound(answer, `delete ${name}`)
      if (isLocked(world, found)) return refusedByConsumer(answer, `delete ${name}`)
      mustAnswer(answer, 200)
      deleteQueue(world, found)
      await settle(scene)
      return { did: `delete ${name}`, effect: 'done' }
    },
  }),
  verb({
    name: 'delete group',
    weight: 1,
    args: groupPlaces,
    async run(scene, place): Promise<Deed> {
      const { world, product } = scene
      const args = groupAt(scene, place)
      const path = `/consumer-groups/${args.group}/queues/${nameOf(scene, args.queue)}`
      const answer = await product.call('DELETE', path)
      const found = world.queues.get(nameOf(scene, args.queue))
      const did = `delete ${args.group} of ${args.queue}`
      if (found === undefined || !found.groups.has(args.group)) return notFound(answer, did)
      if (isLocked(world, found, args.group)) return refusedByConsumer(answer, did)
      mustAnswer(answer, 200)
      deleteGroup(world, found, args.group)
      await settle(scene)
      return { did, effect: 'done' }
    },
  }),
]

type Answer = Parameters<typeof mustAnswer>[0]

export function notFound(answer: Answer, did: string): Deed {
  mustAnswer(answer, 404, 'not_found')
  return { did: `${did}: not found`, effect: 'refused' }
}

function refusedByConsumer(answer: Answer, did: string): Deed {
  mustAnswer(answer, 409, 'consumer_transaction_open')
  return { did: `${did}: a consumer's transaction is open`, effect: 'refused' }
}

function isLocked(world: World, of: Queue, name?: string): boolean {
  return world.leasesOf(of, name).some(({ lockedBy }) => lockedBy !== undefined)
}

interface ConfigureArgs {
  readonly queue: string
  readonly options: Partial<Record<keyof Options, unknown>>
  readonly namespace?: string | undefined
  readonly task?: string | undefined
}

export async function configure(scene: Scene, args: ConfigureArgs): Promise<Deed> {
  const { world, product, prefix } = scene
  const name = nameOf(scene, args.queue)
  const before = world.queues.get(name)
  const given = { ...args.options }
  // Schedules push to b, and a full queue would delay them.
  if (args.queue === 'b') delete given.maxSize
  const target = given.deadLetterTo ? nameOf(scene, given.deadLetterTo as string) : undefined
  const isCircle = target !== undefined && closesCircle(world, name, target)
  // Dead letters in a would count against its maxSize while they are on their way.
  if (args.queue === 'b' && given.deadLetterTo === 'a' && !isCircle) delete given.deadLetterTo
  else if (target !== undefined) given.deadLetterTo = target
  const fields = {
    queue: name,
    options: given,
    namespace: args.namespace && `${prefix}n`,
    task: args.task && `${prefix}t`,
  }
  const answer = await product.call('POST', '/configure', fields)
  const did = `configure ${JSON.stringify(fields)}`
  if (given.retryBackoff && given.retryBackoffMs) {
    mustAnswer(answer, 400, 'invalid_option')
    return { did: `${did}: both are set`, effect: 'refused' }
  }
  if (isCircle) {
    mustAnswer(answer, 400, 'invalid_option')
    return { did: `${did}: closes a circle`, effect: 'refused' }
  }
  const changed = withDelays(
    before?.options ?? defaults,
    Object.fromEntries(
      Object.entries(given).map(([key, value]) => [key, value ?? defaults[key as keyof Options]]),
    ) as Partial<Options>,
  )
  const next = { ...(before?.options ?? defaults), ...changed }
  if (
    before !== undefined &&
    next.ordering !== before.options.ordering &&
    world.leasesOf(before).some((lease) => !lease.isOrdered && isOrdered(next, lease.partition))
  ) {
    mustAnswer(answer, 409, 'queue_in_use')
    return { did: `${did}: queue in use`, effect: 'refused' }
  }
  const limits = (['maxInFlight', 'maxInFlightPerPartition'] as const).some(
    (key) => before !== undefined && next[key] > 0 !== before.options[key] > 0,
  )
  if (limits && before !== undefined && isLocked(world, before))
    return refusedByConsumer(answer, did)
  mustAnswer(answer, 200)
  const configured = world.queueOf(name)
  if (ageMsMax(next) !== ageMsMax(configured.options)) await passOver(scene, configured)
  changeRates(world, configured, next)
  configured.options = next
  if (changed.deadLetterTo) world.queueOf(changed.deadLetterTo)
  configured.namespace = fields.namespace ?? configured.namespace
  configured.task = fields.task ?? configured.task
  for (const [key, value] of Object.entries(changed)) {
    must(
      JSON.stringify(answer.body.options[key]) === JSON.stringify(value),
      `${key} is ${answer.body.options[key]}`,
    )
  }
  return { did, effect: 'done' }
}

function closesCircle(world: World, from: string, to: string | null): boolean {
  if (to === null || to === from) return to === from
  return closesCircle(world, from, world.queues.get(to)?.options.deadLetterTo ?? null)
}

/** There are two options for retry delays. Setting one of them clears the other. */
function withDelays(before: Options, changed: Partial<Options>): Partial<Options> {
  if (changed.retryBackoff) return { ...changed, retryBackoffMs: null }
  if (changed.retryBackoffMs) return { ...changed, retryBackoff: null }
  const isEnded = changed.retryBackoff === null && before.retryBackoff !== null
  return isEnded ? { ...changed, retryBackoffMs: defaults.retryBackoffMs } : changed
}

/**
 * Skips messages in the model that the product has skipped because they are too old. Which ones these are
 * depends on the pops, so the model reads it from the tables.
 */
export async function passOver({ world, product }: Scene, of: Queue): Promise<void> {
  const rows = await product.sql<{
    partition: string
    group: string
    next: string
    again: string[]
  }>(
    `select p.name as partition, g.name as "group", l.next,
       array(select r.seq from rouse.redeliveries r where r.partition_id = p.id and r.group_id = g.id) as again
     from rouse.queues q join rouse.partitions p on p.queue_id = q.id join rouse.groups g on g.queue_id = q.id
     join rouse.lanes l on l.partition_id = p.id and l.group_id = g.id where q.name = $1`,
    [of.name],
  )
  for (const row of rows) {
    const partition = of.partitions.get(row.partition)
    const lane = partition?.lanes.get(row.group)
    if (partition === undefined || lane === undefined) continue
    const isOld = (seq: number) => {
      const message = partition.log.get(seq)
      return (
        message === undefined ||
        world.now - message.createdAt > ageMsMax(of.options) ||
        isExpired(world, message)
      )
    }
    const isKept = (seq: number) => row.again.includes(String(seq)) || seq >= Number(row.next)
    for (const seq of lane.again.keys()) {
      if (isOld(seq) && !lane.redriven.has(seq) && !isKept(seq)) lane.again.delete(seq)
    }
    while (lane.next < Number(row.next) && isOld(lane.next)) lane.next += 1
  }
}
