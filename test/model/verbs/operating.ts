// What operators do: options, seeks, purges, pauses, deletions, dead letters, schedules.
import fc from 'fast-check'
import { deleteGroup, deleteQueue, purge, redrive, seek, subscribe } from '../operating.ts'
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
import { ageMsMax, defaults, type Letter, type Options, type Queue, type World } from '../world.ts'

const queue = fc.constantFrom(...queueNames)
const group = fc.constantFrom(...groupNames)

/** One value of one option; null: its default. */
const changes: fc.Arbitrary<Partial<Record<keyof Options, unknown>>> = fc.oneof(
  ...Object.entries({
    leaseTime: [1, 30, 600],
    retryLimit: [0, 1, 2, null],
    retryBackoffMs: [[0], [1_000, 60_000], null],
    deadLetterQueue: [false, true],
    ordering: ['none', 'none', 'partition', null],
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
    dedupWindowSeconds: [0, 10, null],
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
    args: fc.record({ queue, group, back: fc.constantFrom(undefined, 0, 30_000, 100_000_000) }),
    async run(scene, args): Promise<Deed> {
      const { world, product, prefix } = scene
      const body =
        args.back === undefined
          ? { toEnd: true }
          : { timestamp: new Date(world.now - args.back).toISOString() }
      const path = `/consumer-groups/${args.group}/queues/${nameOf(scene, args.queue)}/seek`
      const answer = await product.call('POST', path, body)
      const found = world.queues.get(`${prefix}${args.queue}`)
      const did = `seek ${args.group} of ${args.queue} to ${JSON.stringify(body)}`
      if (found === undefined || !found.groups.has(args.group)) {
        mustAnswer(answer, 404, 'not_found')
        return { did: `${did}: not found`, effect: 'refused' }
      }
      if (isLocked(world, found, args.group)) return refusedByConsumer(answer, did)
      mustAnswer(answer, 200)
      seek(world, found, args.group, args.back === undefined ? 'end' : world.now - args.back)
      return { did, effect: 'done' }
    },
  }),
  verb({
    name: 'subscribe',
    weight: 1,
    args: fc.record({ queue, group, from: fc.constantFrom('all', 'new', 'time') }),
    async run(scene, args): Promise<Deed> {
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
    args: queue,
    async run(scene, name): Promise<Deed> {
      const { world, product } = scene
      const answer = await product.call('POST', `/queues/${nameOf(scene, name)}/purge`)
      const found = world.queues.get(nameOf(scene, name))
      if (found === undefined) return notFound(answer, `purge ${name}`)
      if (isLocked(world, found)) return refusedByConsumer(answer, `purge ${name}`)
      mustAnswer(answer, 200)
      const count = purge(world, found)
      must(answer.body.purged === count, `purged ${answer.body.purged}, not ${count}`)
      await settle(scene)
      return { did: `purge ${name}: ${count}`, effect: 'done' }
    },
  }),
  verb({
    name: 'pause or resume',
    weight: 3,
    args: fc.record({ queue, paused: fc.constantFrom(true, false, false) }),
    async run(scene, { queue: name, paused }): Promise<Deed> {
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
    args: queue,
    async run(scene, name): Promise<Deed> {
      const { world, product } = scene
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
    args: fc.record({ queue, group }),
    async run(scene, args): Promise<Deed> {
      const { world, product } = scene
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
  readonly namespace: string | undefined
  readonly task: string | undefined
}

async function configure(scene: Scene, args: ConfigureArgs): Promise<Deed> {
  const { world, product, prefix } = scene
  const name = nameOf(scene, args.queue)
  const before = world.queues.get(name)
  const given = { ...args.options }
  // Schedules push to b, and a full queue would hold them up.
  if (args.queue === 'b') delete given.maxSize
  if (before !== undefined && isMuddled(before, given)) return undefined
  const fields = {
    queue: name,
    options: given,
    namespace: args.namespace && `${prefix}n`,
    task: args.task && `${prefix}t`,
  }
  const answer = await product.call('POST', '/configure', fields)
  const did = `configure ${JSON.stringify(fields)}`
  const changed = Object.fromEntries(
    Object.entries(given).map(([key, value]) => [key, value ?? defaults[key as keyof Options]]),
  ) as Partial<Options>
  const next = { ...(before?.options ?? defaults), ...changed }
  if (
    before !== undefined &&
    next.ordering !== before.options.ordering &&
    world.leasesOf(before).length > 0
  ) {
    mustAnswer(answer, 409, 'queue_in_use')
    return { did: `${did}: queue in use`, effect: 'refused' }
  }
  const limits = before !== undefined && next.maxInFlight > 0 !== before.options.maxInFlight > 0
  if (limits && isLocked(world, before)) return refusedByConsumer(answer, did)
  mustAnswer(answer, 200)
  const configured = world.queueOf(name)
  if (ageMsMax(next) !== ageMsMax(configured.options)) await passOver(scene, configured)
  if (next.retryLimit !== configured.options.retryLimit && hasFailed(configured))
    configured.hasOldLimit = true
  configured.options = next
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

/** A redriven letter is known by the retry limit it failed at, so ages and limits do not change in one queue. */
function isMuddled(of: Queue, given: ConfigureArgs['options']): boolean {
  const hasAge = ageMsMax(of.options) < Infinity
  const setsAge = 'ttl' in given || 'maxWaitTimeSeconds' in given
  const setsLimit = 'retryLimit' in given && hasFailed(of)
  return (setsAge && (of.hasOldLimit || setsLimit)) || (setsLimit && hasAge)
}

function hasFailed(of: Queue): boolean {
  return [...of.partitions.values()].some(({ lanes }) =>
    [...lanes.values()].some(({ died, again }) => died.size > 0 || again.size > 0),
  )
}

/** Whether a message that is too old was passed over is for the pops to decide: the model looks which were. */
async function passOver({ world, product }: Scene, of: Queue): Promise<void> {
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
    const isOld = (seq: number) =>
      world.now - (partition.log.get(seq)?.createdAt ?? 0) > ageMsMax(of.options)
    const isKept = (seq: number) => row.again.includes(String(seq)) || seq >= Number(row.next)
    for (const seq of lane.again.keys()) {
      if (isOld(seq) && !lane.died.has(seq) && !isKept(seq)) lane.again.delete(seq)
    }
    while (lane.next < Number(row.next) && isOld(lane.next)) lane.next += 1
  }
}

function rarely<Value>(arbitrary: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> {
  return fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, arbitrary)
}

const where = fc.record({
  consumerGroup: rarely(group),
  partition: rarely(fc.constantFrom(...partitionNames)),
  errorCode: rarely(fc.constantFrom('E1', 'E2', 'lease_expired')),
  index: rarely(fc.nat(5)),
})

interface Where {
  readonly consumerGroup: string | undefined
  readonly partition: string | undefined
  readonly errorCode: string | undefined
  readonly index?: number | undefined
}

function lettersOf(of: Queue, drawn: Where) {
  const { index, ...filter } = drawn
  const one = index === undefined ? undefined : pick(of.letters, index)
  const letters = of.letters.filter(
    (letter) =>
      (filter.consumerGroup === undefined || letter.group === filter.consumerGroup) &&
      (filter.partition === undefined || letter.partition.name === filter.partition) &&
      (filter.errorCode === undefined || letter.code === filter.errorCode) &&
      (one === undefined || letter.message.id === one.message.id),
  )
  const ids = one === undefined ? undefined : [one.message.id as string]
  return { letters, filter: { ...filter, ids } }
}

/** The other one, where the one that was drawn has none. */
function queueWithLetters({ world, prefix }: Scene, name: string): Queue | undefined {
  const found = world.queues.get(`${prefix}${name}`)
  const others = [...world.queues.values()].filter((one) => one.letters.length > 0)
  return found === undefined || found.letters.length === 0 ? (others[0] ?? found) : found
}

export const letters = [
  verb({
    name: 'redrive',
    weight: 10,
    args: fc.record({ queue, where, dryRun: fc.constantFrom(false, false, false, true) }),
    async run(scene, args): Promise<Deed> {
      const { world, product } = scene
      const found = queueWithLetters(scene, args.queue)
      if (found === undefined) return undefined
      const { letters: chosen, filter } = lettersOf(found, args.where)
      const body = { queue: found.name, where: filter, dryRun: args.dryRun }
      const answer = await product.call('POST', '/dlq/redrive', body)
      const did = `redrive ${JSON.stringify(body)}: ${chosen.length}`
      mustAnswer(answer, args.dryRun ? 200 : 202)
      must(
        answer.body.total === chosen.length,
        `redrives ${answer.body.total}, not ${chosen.length}`,
      )
      if (!args.dryRun) {
        redrive(world, found, chosen)
        await settle(scene)
      }
      return { did, effect: chosen.length > 0 ? 'done' : 'refused' }
    },
  }),
  verb({
    name: 'drop letters',
    weight: 1,
    args: fc.record({ queue, where: where.map((filter) => ({ ...filter, index: undefined })) }),
    async run(scene, args): Promise<Deed> {
      const found = queueWithLetters(scene, args.queue)
      if (found === undefined) return undefined
      const { letters: chosen, filter } = lettersOf(found, args.where)
      const given = Object.entries({ queue: found.name, ...filter }).filter(
        ([, value]) => value !== undefined,
      )
      const query = new URLSearchParams(given as [string, string][]).toString()
      const answer = await scene.product.call('DELETE', `/dlq?${query}`)
      mustAnswer(answer, 200)
      must(
        answer.body.deleted === chosen.length,
        `dropped ${answer.body.deleted}, not ${chosen.length}`,
      )
      found.letters = found.letters.filter((letter: Letter) => !chosen.includes(letter))
      return {
        did: `drop letters ${query}: ${chosen.length}`,
        effect: chosen.length > 0 ? 'done' : 'refused',
      }
    },
  }),
]
