// Lists of messages: by state, partition and error code, in pages of any size.
import fc from 'fast-check'
import {
  type Deed,
  groupNames,
  must,
  mustAnswer,
  partitionNames,
  pick,
  type Scene,
  verb,
} from '../verb.ts'
import { type Queue, shown, type World } from '../world.ts'
import { isUnclear, type Logged, listedAs, loggedIn } from './addressing.ts'

const states = [
  undefined,
  'ready',
  'leased',
  'retrying',
  'dead',
  'completed',
  'scheduled',
  'cancelled',
] as const

interface Listed {
  readonly id: string
  readonly partition: string | null
  readonly seq: number | null
  readonly state: string
}

export const listing = [
  verb({
    name: 'list',
    weight: 5,
    args: fc.record({
      index: fc.nat(1_000),
      state: fc.constantFrom(...states),
      partition: fc.constantFrom(undefined, undefined, ...partitionNames),
      group: fc.constantFrom(...groupNames),
      hasCode: fc.boolean(),
      limit: fc.constantFrom(1, 2, 100),
    }),
    async run({ world, product }, { index, hasCode, limit, ...asked }): Promise<Deed> {
      const queue = pick([...world.queues.values()], index)
      if (queue === undefined) return undefined
      const codes = asked.state === 'dead' && hasCode ? codesOf(queue) : []
      const filter = { ...asked, errorCode: pick(codes, index) }
      const found = await listAll(product, queue.name, filter, limit)
      const unclear = unclearIn(world, queue, filter.group)
      const certain = (key: string) => !unclear.has(key.slice(0, key.lastIndexOf(' ')))
      const actual = found.filter((one) => !isCancelledEarly(one)).map(keyOf)
      const expected = [...logOf(world, queue, filter), ...scheduledOf(world, queue, filter)]
      const [has, wants] = [actual, expected].map((keys) => keys.filter(certain).sort().join(', '))
      must(has === wants, `the list has ${has} instead of ${wants}`)
      mustShowCancelled(world, queue, filter, found)
      const did = `list ${found.length} of ${queue.name} ${JSON.stringify({ ...filter, limit })}`
      return { did, effect: 'done' }
    },
  }),
]

interface Filter {
  readonly state: (typeof states)[number]
  readonly partition: string | undefined
  readonly group: string
  readonly errorCode: string | undefined
}

async function listAll(
  product: Scene['product'],
  queue: string,
  { state, partition, group, errorCode }: Filter,
  limit: number,
): Promise<Listed[]> {
  const query = new URLSearchParams({ queue, consumerGroup: group, limit: String(limit) })
  for (const [name, value] of Object.entries({ state, partition, errorCode })) {
    if (value !== undefined) query.set(name, value)
  }
  const found: Listed[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    if (cursor !== '') query.set('cursor', cursor)
    const answer = await product.call('GET', `/messages?${query.toString()}`)
    mustAnswer(answer, 200)
    const page = answer.body.messages as Listed[]
    must(page.length <= limit, `${page.length} messages in a page of ${limit}`)
    found.push(...page)
    cursor = answer.body.cursor as string | null
  }
  return found
}

/** It was cancelled while it was scheduled. */
function isCancelledEarly({ state, seq }: Listed): boolean {
  return state === 'cancelled' && seq === null
}

function keyOf({ partition, seq, state }: Listed): string {
  return placeKey(partition, seq, state)
}

function placeKey(partition: string | null, seq: number | null, state: string): string {
  return `${partition ?? 'independent'} ${seq ?? 'later'} ${state}`
}

/** Messages that may be listed with one state or another, without the state. */
function unclearIn(world: World, queue: Queue, group: string): ReadonlySet<string> {
  const keys = loggedIn(queue)
    .filter((target) => isUnclear(world, target, group))
    .map(({ partition, message }) => `${shown(partition) ?? 'independent'} ${message.seq}`)
  return new Set(keys)
}

function logOf(world: World, queue: Queue, filter: Filter): string[] {
  const { state, partition, group, errorCode } = filter
  const dead = state === 'dead' ? deadOf(queue, group, errorCode) : []
  const places = new Map([...loggedIn(queue), ...dead].map((one) => [placeOf(one), one]))
  return [...places.values()].flatMap((target) => {
    if (partition !== undefined && target.partition.name !== partition) return []
    const listed = listedAs(world, target, group)
    const isBelow = target.message.seq < target.partition.tail
    const isKept = !isBelow || listed === 'leased' || listed === 'retrying' || state === 'dead'
    if (!isKept || listed === 'gone' || (state !== undefined && listed !== state)) return []
    if (errorCode !== undefined && !dead.some((one) => placeOf(one) === placeOf(target))) return []
    return [placeKey(shown(target.partition), target.message.seq, listed)]
  })
}

function placeOf({ partition, message }: Logged): string {
  return `${partition.name} ${message.seq}`
}

/** Dead letters outlive the log. */
function deadOf(queue: Queue, group: string, errorCode: string | undefined): Logged[] {
  return queue.letters
    .filter((letter) => letter.group === group)
    .filter(({ code }) => errorCode === undefined || code === errorCode)
    .map(({ partition, message }) => ({
      kind: 'log',
      id: message.id ?? '',
      queue,
      partition,
      message: partition.log.get(message.seq) ?? message,
    }))
}

function codesOf({ letters }: Queue): string[] {
  return letters.flatMap(({ code }) => (code === null ? [] : [code]))
}

function scheduledOf(world: World, queue: Queue, { state, partition }: Filter): string[] {
  if (state !== undefined && state !== 'scheduled') return []
  return world.scheduled
    .filter((one) => one.queue === queue.name)
    .filter((one) => partition === undefined || one.partition === partition)
    .map((one) => placeKey(shown({ name: one.partition }), null, 'scheduled'))
}

/** The partition of such a message is not part of the model. */
function mustShowCancelled(
  world: World,
  queue: Queue,
  { state, partition }: Filter,
  found: readonly Listed[],
): void {
  if (partition !== undefined || (state !== undefined && state !== 'cancelled')) return
  const ids = new Set(found.filter(isCancelledEarly).map(({ id }) => id))
  const missing = world.cancelled.filter((one) => one.queue === queue.name && !ids.has(one.id))
  must(missing.length === 0, `the list lacks the cancelled ${missing.map(({ id }) => id).join()}`)
}
