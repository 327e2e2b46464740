// Single messages by their ids: looked up, cancelled, made due.
import fc from 'fast-check'
import {
  type Deed,
  groupNames,
  must,
  mustAnswer,
  nameIn,
  pick,
  type Scene,
  settle,
  verb,
} from '../verb.ts'
import {
  ageMsMax,
  isExpired,
  type Message,
  type Partition,
  type Queue,
  type Scheduled,
  type World,
} from '../world.ts'
import { plainItem, push } from './producing.ts'

export interface Logged {
  readonly kind: 'log'
  readonly id: string
  readonly queue: Queue
  readonly partition: Partition
  readonly message: Message
}
type Target =
  | Logged
  | { readonly kind: 'scheduled'; readonly id: string; readonly one: Scheduled }
  | { readonly kind: 'cancelled'; readonly id: string; readonly queue: string }

const index = fc.nat(1_000)
const dryRun = fc.nat(3).map((n) => n === 0)

export const addressing = [
  verb({
    name: 'look up',
    weight: 4,
    args: fc.record({ index, waits: fc.boolean() }),
    async run(scene, args): Promise<Deed> {
      const target = pick(targetsOf(scene.world), args.index)
      if (target === undefined) return undefined
      // At the deadline the answer is the present state.
      const wait = args.waits ? '?wait=true&timeout=20' : ''
      const answer = await scene.product.call('GET', `/messages/${target.id}${wait}`)
      mustAnswer(answer, 200)
      const expected = stateOf(scene.world, target)
      const { id, state } = answer.body as { id: string; state: string }
      must(id === target.id, `the id is ${id} instead of ${target.id}`)
      must(expected.includes(state), `the state is ${state} instead of ${expected.join(' or ')}`)
      if (target.kind === 'log') mustReport(target, answer.body.groups as ShownGroup[])
      return { did: `look up ${describe(target)}: ${state}`, effect: 'done' }
    },
  }),
  verb({
    name: 'cancel',
    weight: 6,
    args: fc.record({ index }),
    async run(scene, args): Promise<Deed> {
      const { world, product } = scene
      const target = await targetFor(scene, args.index)
      if (target === undefined) return undefined
      const answer = await product.call('DELETE', `/messages/${target.id}`)
      const did = `cancel ${describe(target)}`
      if (target.kind === 'log') {
        const code = refusalOf(world, target)
        if (code !== undefined) {
          mustAnswer(answer, 409, code)
          return { did: `${did}: ${code}`, effect: 'refused' }
        }
      }
      mustAnswer(answer, 200)
      must(answer.body.cancelled === true, `the answer is ${answer.text}`)
      cancel(world, target)
      return { did, effect: 'done' }
    },
  }),
  verb({
    name: 'cancel all scheduled',
    weight: 2,
    args: fc.record({ index, isOneByOne: fc.boolean(), dryRun }),
    async run({ world, product }, args): Promise<Deed> {
      const first = pick(world.scheduled, args.index)
      if (first === undefined) return undefined
      const chosen = world.scheduled.filter(({ queue }) => queue === first.queue)
      const filter = { queue: first.queue, state: 'scheduled' }
      const sum = await cancelAll(product, filter, args)
      const did = `cancel ${chosen.length} scheduled of ${first.queue}, dry run ${args.dryRun}`
      mustCancel(sum, chosen.length, args.dryRun ? 0 : chosen.length)
      if (!args.dryRun) for (const one of chosen) cancelScheduled(world, one)
      return { did, effect: args.dryRun ? 'refused' : 'done' }
    },
  }),
  verb({
    name: 'cancel all ready or retrying',
    weight: 3,
    args: fc.record({
      index,
      state: fc.constantFrom('ready', 'retrying'),
      group: fc.constantFrom(...groupNames),
      isOneByOne: fc.boolean(),
      dryRun,
    }),
    async run({ world, product }, { index, state, group, ...args }): Promise<Deed> {
      const queue = pick([...world.queues.values()], index)
      if (queue === undefined) return undefined
      const logged = loggedIn(queue)
      if (logged.some((target) => isUnclear(world, target, group))) return undefined
      const chosen = logged.filter((target) => listedAs(world, target, group) === state)
      const open = chosen.filter((target) => refusalOf(world, target) === undefined)
      const filter = { queue: queue.name, state, consumerGroup: group }
      const sum = await cancelAll(product, filter, args)
      mustCancel(sum, chosen.length, args.dryRun ? 0 : open.length)
      if (!args.dryRun) for (const target of open) cancel(world, target)
      const did = `cancel ${open.length} of ${chosen.length} ${state} of ${queue.name} for ${group}`
      const isDone = !args.dryRun && open.length > 0
      return { did: `${did}, dry run ${args.dryRun}`, effect: isDone ? 'done' : 'refused' }
    },
  }),
  verb({
    name: 'run now',
    weight: 3,
    args: fc.record({ index }),
    async run(scene, args): Promise<Deed> {
      const { world, product } = scene
      const certain = targetsOf(world).filter((one) => one.kind !== 'log' || !mayBeReady(one))
      const waiting = certain.filter(
        (one) => one.kind === 'scheduled' || (one.kind === 'log' && lanesAgain(one).length > 0),
      )
      const target = pick(waiting, args.index) ?? pick(certain, args.index)
      if (target === undefined) return undefined
      const answer = await product.call('POST', `/messages/${target.id}/run-now`)
      const did = `run now ${describe(target)}`
      if (!waiting.includes(target)) {
        mustAnswer(answer, 409, 'not_scheduled')
        return { did: `${did}: not scheduled`, effect: 'refused' }
      }
      mustAnswer(answer, 200)
      if (target.kind === 'scheduled') {
        world.scheduled = world.scheduled.map((one) =>
          one === target.one ? { ...one, dueAt: Math.min(one.dueAt, world.now) } : one,
        )
        await settle(scene)
      } else if (target.kind === 'log') {
        for (const lane of lanesAgain(target)) {
          const again = lane.again.get(target.message.seq)
          if (again === undefined) continue
          const dueAt = Math.min(again.dueAt, world.now)
          lane.again.set(target.message.seq, { ...again, dueAt })
        }
      }
      return { did, effect: 'done' }
    },
  }),
]

interface Cancelled {
  readonly matched: number
  readonly cancelled: number
}

/** Cancels by a filter, page by page. */
async function cancelAll(
  product: Scene['product'],
  filter: Readonly<Record<string, string>>,
  { isOneByOne, dryRun }: { readonly isOneByOne: boolean; readonly dryRun: boolean },
): Promise<Cancelled> {
  const limit = isOneByOne ? '1' : '100'
  const query = new URLSearchParams({ ...filter, limit, dryRun: String(dryRun) })
  const sum = { matched: 0, cancelled: 0 }
  for (let cursor: string | null = ''; cursor !== null; ) {
    if (cursor !== '') query.set('cursor', cursor)
    const answer = await product.call('DELETE', `/messages?${query.toString()}`)
    mustAnswer(answer, 200)
    sum.matched += answer.body.matched as number
    sum.cancelled += answer.body.cancelled as number
    cursor = answer.body.cursor as string | null
  }
  return sum
}

function mustCancel({ matched, cancelled }: Cancelled, chosen: number, open: number): void {
  must(matched === chosen, `matched ${matched} of ${chosen}`)
  must(cancelled === open, `cancelled ${cancelled} instead of ${open}`)
}

interface ShownGroup {
  readonly consumerGroup: string
  readonly result: unknown
  readonly progress: unknown
}

/** Every group shows what its consumers reported. */
function mustReport({ partition, message }: Logged, groups: readonly ShownGroup[]): void {
  for (const { consumerGroup, result, progress } of groups) {
    const group = consumerGroup === 'default' ? '__QUEUE_MODE__' : consumerGroup
    const known = partition.lanes.get(group)?.reports.get(message.seq)
    const isRight =
      JSON.stringify(result) === (known?.result ?? 'null') &&
      JSON.stringify(progress) === (known?.progress ?? 'null')
    must(isRight, `${group} shows ${JSON.stringify({ result, progress })}`)
  }
}

/** Every message whose id a response has shown, and that is young enough to be delivered. */
export function targetsOf(world: World): Target[] {
  const logged = [...world.queues.values()]
    .flatMap(loggedIn)
    .filter((one) => one.id !== '' && !isUncertain(world, one.queue, one.partition, one.message))
  const scheduled = world.scheduled.flatMap((one): Target[] =>
    one.message.id === undefined ? [] : [{ kind: 'scheduled', id: one.message.id, one }],
  )
  const cancelled = world.cancelled.map((one): Target => ({ kind: 'cancelled', ...one }))
  return [...logged, ...scheduled, ...cancelled]
}

/** Messages whose ids are not known yet have an empty one. */
export function loggedIn(queue: Queue): Logged[] {
  return [...queue.partitions.values()].flatMap((partition) =>
    [...partition.log.values()].map(
      (message): Logged => ({ kind: 'log', id: message.id ?? '', queue, partition, message }),
    ),
  )
}

/** A purged message is not listed. */
export function listedAs(world: World, target: Logged, group: string): string {
  const state = stateIn(world, target, group)
  return state === 'ready' && target.message.seq < target.partition.tail ? 'gone' : state
}

/** Whether the model cannot tell if a list of the ready or retrying messages of the group has the message. */
export function isUnclear(world: World, target: Logged, group: string): boolean {
  const { queue, partition, message } = target
  if (message.isCancelled) return false
  const again = partition.lanes.get(group)?.again.get(message.seq)
  const state = listedAs(world, target, group)
  if (state !== 'ready' && state !== 'retrying') return false
  return again?.soft === true || isUncertain(world, queue, partition, message)
}

/** A pop drops a message that is too old, unless it is redriven. Below the tail, retention may remove it. */
function isUncertain(world: World, queue: Queue, { tail }: Partition, message: Message): boolean {
  const isOld = world.now - message.createdAt > ageMsMax(queue.options)
  return message.seq < tail || isOld || isExpired(world, message)
}

/** A message that can be cancelled; if there is none, pushes one. Every third time any message. */
async function targetFor(scene: Scene, number: number): Promise<Target | undefined> {
  const { world } = scene
  const open = () =>
    targetsOf(world).filter((one) => one.kind !== 'log' || refusalOf(world, one) === undefined)
  if (number % 3 === 0) return pick(targetsOf(world), number)
  if (open().length === 0) {
    const { did } = await push(scene, [{ ...plainItem, delayMs: number % 2 === 0 ? 60_000 : 0 }])
    scene.lines.push(did)
  }
  return pick(open(), number)
}

function lanesAgain({ partition, message }: Logged) {
  return [...partition.lanes.values()].filter(({ again }) => again.has(message.seq))
}

/** Whether the message was released: it may count as new again, or as one that waits for a retry. */
function mayBeReady(target: Logged): boolean {
  return lanesAgain(target).some(({ again }) => again.get(target.message.seq)?.soft)
}

/** The state of a message in every group. */
function statesOf(world: World, target: Logged): string[] {
  return [...target.queue.groups].map((group) => stateIn(world, target, group))
}

function stateIn(world: World, { queue, partition, message }: Logged, group: string): string {
  const { seq } = message
  const lane = partition.lanes.get(group)
  if (message.isCancelled) return 'cancelled'
  if (lane === undefined || lane.again.has(seq)) return lane === undefined ? 'ready' : 'retrying'
  const isHeld = world.leases.some(
    (lease) => lease.partition === partition && lease.group === group && lease.left.has(seq),
  )
  if (seq >= lane.next) return 'ready'
  if (isHeld) return 'leased'
  const isDead = queue.letters.some(
    (letter) =>
      letter.partition === partition && letter.group === group && letter.message.seq === seq,
  )
  return isDead ? 'dead' : 'completed'
}

const order = ['ready', 'leased', 'retrying', 'dead', 'completed']

/** A released message may count as new again. */
function stateOf(world: World, target: Target): string[] {
  if (target.kind !== 'log') return [target.kind]
  if (target.message.isCancelled) return ['cancelled']
  const states = statesOf(world, target)
  const first = order.find((state) => states.includes(state)) ?? 'ready'
  return states.includes('retrying') ? [first, 'ready', 'retrying'] : [first]
}

function refusalOf(world: World, target: Logged): string | undefined {
  if (target.message.isCancelled) return undefined
  const states = statesOf(world, target)
  if (states.includes('leased')) return 'message_leased'
  return states.some((state) => state === 'dead' || state === 'completed')
    ? 'message_finished'
    : undefined
}

/** The id of a message from SQL may not be known. */
function cancelScheduled(world: World, one: Scheduled): void {
  const { id } = one.message
  if (id !== undefined) return cancel(world, { kind: 'scheduled', id, one })
  world.scheduled = world.scheduled.filter((other) => other !== one)
}

/** The message keeps its dedupe key: an attempt of its push that comes late is a duplicate. */
export function cancel(world: World, target: Target): void {
  if (target.kind === 'cancelled') return
  if (target.kind === 'log') {
    target.message.isCancelled = true
    for (const lane of target.partition.lanes.values()) lane.again.delete(target.message.seq)
  } else {
    world.scheduled = world.scheduled.filter((one) => one !== target.one)
    world.cancelled.push({ id: target.id, queue: target.one.queue, at: world.now })
  }
}

export function describe(target: Target): string {
  if (target.kind === 'log')
    return `${nameIn(target.queue, target.partition)} ${target.message.seq}`
  return `${target.kind} ${target.id}`
}
