// Every kind of pop.
import { timeOfMessageId } from '@rouse/protocol'
import fc from 'fast-check'
import { allowed, type Offer, offerOf, record, take } from '../delivering.ts'
import { subscribe } from '../operating.ts'
import type { Answer } from '../product.ts'
import { spend } from '../rates.ts'
import {
  type Deed,
  groupNames,
  must,
  mustAnswer,
  nameIn,
  nameOf,
  partitionNames,
  pick,
  queueNames,
  type Scene,
  verb,
} from '../verb.ts'
import { isOrdered, type Message, type Partition, priorityIn, type Queue, shown } from '../world.ts'
import { isEach, leaseFor } from './popped-leases.ts'

export interface PopArgs {
  readonly from: string
  readonly partition: string | undefined
  readonly group: string
  readonly batch: number
  readonly partitions: number
  readonly autoAck: boolean
  /** Whether each message gets its own lease, unless it is acknowledged on delivery. */
  readonly each: boolean
  readonly wait: boolean
  readonly leaseSeconds: number | undefined
  readonly subscription: 'all' | 'new' | 'now' | 'from'
  /** If the target has no deliverable message, uses a queue and group that have one. */
  readonly aim: number | undefined
}

export const popArgs = fc.record({
  from: fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom<string>(...queueNames) },
    fc.constantFrom('namespace', 'task', 'both'),
  ),
  partition: fc.oneof(
    { weight: 3, arbitrary: fc.constant(undefined) },
    fc.constantFrom(...partitionNames),
  ),
  group: fc.constantFrom(...groupNames),
  batch: fc.constantFrom(1, 2, 3, 10),
  partitions: fc.constantFrom(1, 1, 2, 5),
  autoAck: fc.oneof({ weight: 6, arbitrary: fc.constant(false) }, fc.constant(true)),
  each: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
  wait: fc.boolean(),
  leaseSeconds: fc.option(fc.constantFrom(1, 30, 1_000), { nil: undefined, freq: 2 }),
  subscription: fc.oneof(
    { weight: 4, arbitrary: fc.constant('all' as const) },
    fc.constantFrom('new' as const, 'now' as const, 'from' as const),
  ),
  aim: fc.option(fc.nat(20), { nil: undefined, freq: 4 }),
})

/** The arguments of a pop of queue a: a batch from all partitions, for the group `__QUEUE_MODE__`. */
export const anyPop: PopArgs = {
  from: 'a',
  partition: undefined,
  group: '__QUEUE_MODE__',
  batch: 10,
  partitions: 5,
  autoAck: false,
  each: false,
  wait: false,
  leaseSeconds: undefined,
  subscription: 'all',
  aim: undefined,
}

interface Candidate {
  readonly queue: Queue
  readonly partition: Partition
  readonly offer: Offer
}

/** The queues of the pop in the order of the response: the highest priority first. */
function queuesOf(scene: Scene, { from }: PopArgs): Queue[] {
  const { world, prefix } = scene
  const own = [...world.queues.values()]
  const named = own.find(({ name }) => name === `${prefix}${from}`)
  if (from.length === 1) return named === undefined ? [] : [named]
  return own.filter(({ namespace, task }) => {
    const isNamespace = from === 'task' || namespace === `${prefix}n`
    return isNamespace && (from === 'namespace' || task === `${prefix}t`)
  })
}

export function pathOf(scene: Scene, args: PopArgs): string {
  const { prefix, world } = scene
  const { from, partition } = args
  const isNamed = from.length === 1
  const path = isNamed
    ? `/pop/queue/${nameOf(scene, from)}${partition === undefined ? '' : `/partition/${partition}`}`
    : '/pop'
  const query = {
    consumerGroup: args.group === '__QUEUE_MODE__' ? undefined : args.group,
    batch: String(args.batch),
    partitions: String(args.partitions),
    autoAck: args.autoAck ? 'true' : undefined,
    leasePerMessage: isEach(args) ? 'true' : undefined,
    leaseSeconds: args.leaseSeconds === undefined ? undefined : String(args.leaseSeconds),
    namespace: isNamed || from === 'task' ? undefined : `${prefix}n`,
    task: isNamed || from === 'namespace' ? undefined : `${prefix}t`,
    subscriptionMode: args.subscription === 'new' ? 'new' : undefined,
    subscriptionFrom: {
      now: 'now',
      from: new Date(world.now - 60_000).toISOString(),
      all: undefined,
      new: undefined,
    }[args.subscription],
  }
  const given = Object.entries(query).filter(([, value]) => value !== undefined) as [
    string,
    string,
  ][]
  return `${path}?${new URLSearchParams(given).toString()}`
}

/** Creates the group in the model: its first pop creates it in all its queues that are not paused. */
export function meetGroup(scene: Scene, args: PopArgs): Queue[] {
  const queues = queuesOf(scene, args)
  const { now } = scene.world
  const from = { all: 'all' as const, new: now, now, from: now - 60_000 }[args.subscription]
  for (const queue of queues) if (!queue.paused) subscribe(queue, args.group, from)
  return queues
}

export function candidatesOf(
  { world }: Scene,
  args: PopArgs,
  queues: readonly Queue[],
): Candidate[] {
  return queues
    .filter((queue) => !queue.paused && allowed(world, queue, args.group) > 0)
    .flatMap((queue) =>
      [...queue.partitions.values()]
        .filter(
          ({ name }) =>
            args.partition === undefined || args.from.length > 1 || name === args.partition,
        )
        .map((partition) => ({
          queue,
          partition,
          offer: offerOf(world, queue, partition, args.group),
        })),
    )
    .filter(({ offer }) => offer.most > 0)
}

/** Checks the response of a pop, and applies it to the model. Returns a description of the messages. */
export function popped(scene: Scene, args: PopArgs, answer: Answer): string {
  const queues = meetGroup(scene, args)
  const candidates = candidatesOf(scene, args, queues)
  const messages = (answer.body?.messages ?? []) as PoppedMessage[]
  if (messages.length === 0) {
    const due = candidates.filter(({ offer }) => offer.least > 0)
    const names = due.map(
      ({ queue, partition, offer }) =>
        `${nameIn(queue, partition)} seq ${offer.messages[0]?.message.seq}`,
    )
    must(due.length === 0, `got nothing; ${args.group} should get ${names.join(' or ')}`)
    if (answer.status === 200) return 'nothing'
    const isPaused = queues.some(({ paused }) => paused)
    if (isPaused && answer.status === 423) return 'paused'
    must(!isPaused || args.from.length > 1, 'a paused queue is not reported as paused')
    mustAnswer(answer, 204)
    return 'nothing'
  }
  mustAnswer(answer, 200)
  must(messages.length <= args.batch, `${messages.length} messages for a batch of ${args.batch}`)
  const runs = runsOf(messages)
  const places = new Set(
    runs.map(([first]) => placeOf(scene, first as PoppedMessage, answer.text)?.place),
  )
  must(places.size <= args.partitions, `${places.size} partitions instead of ${args.partitions}`)
  checkPriority(candidates, messages)
  checkLevels(scene, candidates, runs, answer.text)
  let room = args.batch
  const came = runs.map((run) => {
    const text = poppedRun(scene, args, run, room, answer.text)
    room -= run.length
    return text
  })
  return came.join(', ')
}

export interface PoppedMessage {
  readonly id: string
  readonly queue: string
  readonly partition: string | null
  readonly partitionId: string
  readonly seq: number
  readonly attempt: number
  readonly leaseId: string | null
  readonly receipt: string | null
  readonly transactionId: string
  readonly traceId: string | null
  readonly createdAt: string
  readonly consumerGroup: string
}

function runsOf(messages: readonly PoppedMessage[]): PoppedMessage[][] {
  const runs: PoppedMessage[][] = []
  for (const message of messages) {
    const run = runs.at(-1)
    if (run?.[0]?.partitionId === message.partitionId) run.push(message)
    else runs.push([message])
  }
  return runs
}

function checkPriority(candidates: readonly Candidate[], messages: readonly PoppedMessage[]): void {
  const priorityOf = (name: string) =>
    candidates.find(({ queue }) => queue.name === name)?.queue.options.priority ?? Number.NaN
  const sure = candidates.filter(({ offer }) => offer.least > 0)
  const highest = Math.max(...sure.map(({ queue }) => queue.options.priority))
  const got = Math.max(...messages.map(({ queue }) => priorityOf(queue)))
  must(
    !(got < highest),
    `got messages of priority ${got} although a queue of priority ${highest} has some`,
  )
}

/** The partition of a popped message. Of those without a name, the one that has the message. */
export function placeOf(
  { world }: Scene,
  { queue: name, partition, seq, id }: PoppedMessage,
  raw: string,
) {
  const queue = world.queues.get(name)
  const text = raw.slice(raw.indexOf(`{"id":"${id}"`))
  const data = text.slice(text.indexOf('"data":') + '"data":'.length)
  const partitions = [...(queue?.partitions.values() ?? [])].filter((one) =>
    partition === null ? shown(one) === null && one.log.has(seq) : one.name === partition,
  )
  const found =
    partitions.find(({ log }) => data.startsWith(`${log.get(seq)?.payload},`)) ?? partitions[0]
  if (queue === undefined || found === undefined) return undefined
  // All messages with a priority count as one partition of their queue.
  const place = `${name}/${priorityIn(found) > 0 ? 'priority' : found.name}`
  return { queue, partition: found, place }
}

/** Messages with a priority come before all others of their queue, the highest first. */
function checkLevels(
  scene: Scene,
  candidates: readonly Candidate[],
  runs: readonly PoppedMessage[][],
  raw: string,
): void {
  const came = runs.flatMap(([first]) => placeOf(scene, first as PoppedMessage, raw) ?? [])
  for (const queue of new Set(came.map((place) => place.queue))) {
    const levels = came
      .filter((place) => place.queue === queue)
      .map(({ partition }) => priorityIn(partition))
    const sure = candidates.filter((one) => one.queue === queue && one.offer.least > 0)
    const highest = Math.max(0, ...sure.map(({ partition }) => priorityIn(partition)))
    const isSorted = levels.every((level, i) => i === 0 || level <= (levels[i - 1] as number))
    must(
      (levels[0] as number) >= highest && isSorted,
      `got priorities ${levels.join(' ')} of ${queue.name} although it has messages of priority ${highest}`,
    )
  }
}

function poppedRun(
  scene: Scene,
  args: PopArgs,
  run: readonly PoppedMessage[],
  room: number,
  raw: string,
): string {
  const { world } = scene
  const [first] = run as [PoppedMessage]
  const place = placeOf(scene, first, raw)
  must(
    place !== undefined,
    `got messages from ${first.queue}/${first.partition}, which does not exist`,
  )
  const { queue, partition } = place
  const where = nameIn(queue, partition)
  const offer = offerOf(world, queue, partition, args.group)
  const seqs = run.map(({ seq }) => seq)
  const offered = offer.messages.slice(0, offer.most)
  const wanted = offered.map(({ message }) => message.seq)
  must(
    seqs.every((seq, i) => seq === wanted[i]),
    `${where} gave ${args.group} ${seqs.join(' ')}; it should get the first of ${wanted.join(' ')}`,
  )
  const atOnce = isEach(args) && isOrdered(queue.options, partition) ? 1 : room
  const most = Math.min(atOnce, allowed(world, queue, args.group))
  must(run.length <= most, `${where} gave ${run.length} messages; at most ${most} are allowed`)
  must(
    run.length >= Math.min(most, offer.least),
    `${where} gave ${seqs.join(' ')}, but has more: ${wanted.join(' ')}`,
  )
  spend(world, queue, partition, args.group, run.length)
  const shared =
    args.autoAck || isEach(args) ? undefined : leaseFor(scene, args, queue, partition, run)
  for (const [i, message] of run.entries()) {
    const known = offered[i] as (typeof offered)[number]
    checkMessage(known.message, known.attempt, message, raw)
    must(message.consumerGroup === args.group, `the group is ${message.consumerGroup}`)
    take(partition, args.group, known)
    const lease = isEach(args) ? leaseFor(scene, args, queue, partition, [message]) : shared
    if (lease === undefined) {
      must(message.leaseId === null && message.receipt === null, 'autoAck left a lease')
      if (queue.options.history === 'all') record(partition, args.group, message.seq)
    } else {
      const { leaseId, receipt, transactionId, seq } = message
      const isUnique =
        isEach(args) || run.filter((one) => one.transactionId === transactionId).length === 1
      const expected = isUnique ? lease.id : receipt
      must(leaseId === expected, `the leaseId is ${leaseId} instead of ${expected}`)
      const ids = { receipt: receipt as string, leaseId: leaseId as string, transactionId }
      world.deliveries.push({ lease, seq, ...ids })
    }
  }
  return `${where} ${seqs.join(' ')} attempt ${first.attempt}`
}

function checkMessage(known: Message, attempt: number, came: PoppedMessage, raw: string): void {
  known.id ??= came.id
  const wanted = {
    id: known.id,
    seq: known.seq,
    attempt,
    transactionId: known.key ?? (known.isKnownById ? came.id : `${came.partitionId}-${known.seq}`),
    traceId: known.traceId,
  }
  for (const [name, value] of Object.entries(wanted)) {
    const got = came[name as keyof typeof wanted]
    must(got === value, `seq ${known.seq} was returned with ${name} ${got} instead of ${value}`)
  }
  // The id has the time of the push, by the clock of the worker. The log has that of the database.
  const isKnown = [known.createdAt, timeOfMessageId(came.id)].includes(Date.parse(came.createdAt))
  must(isKnown, `seq ${known.seq} was returned with createdAt ${came.createdAt}`)
  const text = raw.slice(raw.indexOf(`{"id":"${came.id}"`))
  const isEqual = text.includes(`"data":${known.payload},"createdAt"`)
  must(isEqual, `the payload ${known.payload} was returned as ${text.slice(0, 300)}`)
  const end = text.slice(
    text.indexOf(`"attempt":${attempt},"headers":`) + `"attempt":${attempt},"headers":`.length,
  )
  must(
    end.startsWith(`${known.headers ?? 'null'}}`),
    `the headers ${known.headers} were returned as ${end.slice(0, 200)}`,
  )
}

/**
 * Whether a pop gets a message at once. Considers only queues in which the group exists, because the pop
 * would create it in the others.
 */
export function mustCome(scene: Scene, args: PopArgs): boolean {
  const known = queuesOf(scene, args).filter(({ groups }) => groups.has(args.group))
  return candidatesOf(scene, args, known).some(({ offer }) => offer.least > 0)
}

/** Queues and groups with a deliverable message. */
export function waiting(scene: Scene): Pick<PopArgs, 'from' | 'group' | 'partition'>[] {
  return [...scene.world.queues.values()].flatMap((queue) => {
    const places = [...queue.groups].map((group) => ({
      from: queue.name.slice(-1),
      group,
      partition: undefined,
    }))
    return places.filter((place) => mustCome(scene, { ...anyPop, ...place }))
  })
}

export function aimed(scene: Scene, args: PopArgs): PopArgs {
  if (args.aim === undefined || mustCome(scene, args)) return args
  return { ...args, ...pick(waiting(scene), args.aim) }
}

export const consuming = [
  verb({
    name: 'pop',
    weight: 28,
    args: popArgs,
    async run(scene, drawn): Promise<Deed> {
      const args = aimed(scene, drawn)
      const wait = args.wait && mustCome(scene, args)
      const path = `${pathOf(scene, args)}${wait ? '&wait=true&timeout=5000' : ''}`
      const answer = await scene.product.call('GET', path)
      const came = popped(scene, { ...args, wait }, answer)
      const isEmpty = answer.body?.messages === undefined
      return { did: `pop ${path}: ${came}`, effect: isEmpty ? 'refused' : 'done' }
    },
  }),
]
