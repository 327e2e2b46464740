// What a pop may return, how deliveries end, and with which effect.
import { laneTokensOf, tokensOf } from './rates.ts'
import {
  ageMsMax,
  defaults,
  freshOf,
  isExpired,
  isOrdered,
  type Lease,
  laneOf,
  type Message,
  mayBeFresh,
  type Options,
  type Partition,
  partitionFor,
  type Queue,
  shown,
  type World,
} from './world.ts'

export interface Offered {
  readonly message: Message
  readonly attempt: number
  /** Undefined: not delivered before. */
  readonly again: { readonly alone: boolean; readonly soft: boolean } | undefined
}

/**
 * A pop of this lane gets the first of these messages: at least `least` and at most `most` of them, if its
 * batch allows.
 */
export interface Offer {
  readonly messages: readonly Offered[]
  readonly least: number
  readonly most: number
}

const nothing: Offer = { messages: [], least: 0, most: 0 }

export function offerOf(world: World, queue: Queue, partition: Partition, group: string): Offer {
  const { options } = queue
  const isHeld = world.leases.some(
    (lease) => lease.isOrdered && lease.partition === partition && lease.group === group,
  )
  if (isHeld) return nothing
  const holds = isOrdered(options, partition) && options.onFailure === 'hold'
  const agains = againsOf(world, queue, partition, group)
  const waitingAt = holds ? agains.findIndex(({ isDue }) => !isDue) : -1
  const due = (waitingAt < 0 ? agains : agains.slice(0, waitingAt)).filter(({ isDue }) => isDue)
  const isQuiet = partition.lastAt + options.windowBuffer * 1_000 <= world.now
  const isOpen = waitingAt < 0 && isQuiet
  const fresh = freshOf(partition, group).filter(
    (message) => world.now - message.createdAt <= ageMsMax(options) && !isExpired(world, message),
  )
  const messages: Offered[] = [
    ...due,
    ...(isOpen ? fresh : []).map((message) => ({ message, attempt: 1, again: undefined })),
  ]
  const [first] = messages
  if (first === undefined) return nothing
  // A released message may count as new again, and then waits for the window buffer of its queue.
  const isUncertain = !isQuiet && mayBeFresh(laneOf(partition, group), first.message.seq)
  const allowedMax = Math.min(
    laneTokensOf(world, queue, partition, group),
    laneRoomOf(world, queue, partition, group),
  )
  return {
    messages,
    least: isUncertain
      ? 0
      : Math.min(allowedMax, mostAtOnce(partition), runLength(messages, mustShareLease)),
    most: Math.min(allowedMax, runLength(messages, mayShareLease)),
  }
}

/**
 * How many more messages of a partition the group may hold. An ordered lane has one lease at a time, and
 * independent messages have no partition.
 */
function laneRoomOf(world: World, queue: Queue, partition: Partition, group: string): number {
  const { maxInFlightPerPartition } = queue.options
  if (maxInFlightPerPartition === 0 || shown(partition) === null) return Infinity
  const leases = world.leases.filter(
    (one) => !one.isOrdered && one.partition === partition && one.group === group,
  )
  const held = leases.reduce((sum, { left }) => sum + left.size, 0)
  return Math.max(0, maxInFlightPerPartition - (isOrdered(queue.options, partition) ? 0 : held))
}

/** A pop takes a range of seqs, and returns fewer messages if some of them are cancelled or expired. */
function mostAtOnce({ log }: Partition): number {
  const mayBeSkipped = ({ isCancelled, expiresAt }: Message) =>
    isCancelled === true || expiresAt !== undefined
  return [...log.values()].some(mayBeSkipped) ? 1 : Infinity
}

/** The messages to redeliver that are not too old, by seq. */
function againsOf(world: World, queue: Queue, partition: Partition, group: string) {
  const lane = laneOf(partition, group)
  return [...lane.again]
    .toSorted(([a], [b]) => a - b)
    .flatMap(([seq, again]) => {
      const message = partition.log.get(seq)
      if (message === undefined) throw new Error(`the model lost message ${seq}`)
      const isAgeless = lane.redriven.has(seq)
      const isLate =
        world.now - message.createdAt > ageMsMax(queue.options) || isExpired(world, message)
      const isOld = isLate && !isAgeless
      const isDue = again.dueAt <= world.now
      const soft = again.soft || isAgeless
      return isOld
        ? []
        : [{ message, attempt: again.attempts + 1, again: { ...again, soft }, isDue }]
    })
}

type Sharing = (one: Offered, next: Offered) => boolean

function runLength(messages: readonly Offered[], shares: Sharing): number {
  const end = messages.findIndex((next, i) => i > 0 && !shares(messages[i - 1] as Offered, next))
  return end < 0 ? messages.length : end
}

function mayShareLease(one: Offered, next: Offered): boolean {
  return !one.again?.alone && !next.again?.alone && one.attempt === next.attempt
}

function mustShareLease(one: Offered, next: Offered): boolean {
  const isAlike = (one.again === undefined) === (next.again === undefined)
  return isAlike && mayShareLease(one, next) && !one.again?.soft && !next.again?.soft
}

/** How many more messages a group may get. */
export function allowed(world: World, queue: Queue, group: string): number {
  const { maxInFlight } = queue.options
  const permitted = tokensOf(world, queue, group)
  if (maxInFlight === 0) return permitted
  const held = world.leasesOf(queue, group).reduce((sum, { left }) => sum + left.size, 0)
  return Math.max(0, Math.min(permitted, maxInFlight - held))
}

export function take(partition: Partition, group: string, { message, again }: Offered): void {
  const lane = laneOf(partition, group)
  if (again === undefined) lane.next = message.seq + 1
  else lane.again.delete(message.seq)
}

export type Status = 'completed' | 'failed' | 'retry' | 'dlq' | 'expired'

export interface Ending {
  readonly status: Status
  readonly code?: string | undefined
  readonly delayMs?: number | undefined
  /** The result of a completed message, any JSON; undefined: none. */
  readonly result?: unknown
}

/** Ends the delivery of some messages of a lease. Returns whether one of them became a dead letter. */
export function end(world: World, lease: Lease, seqs: readonly number[], ending: Ending): boolean {
  let isDead = false
  for (const seq of seqs) {
    lease.left.delete(seq)
    if (ending.status === 'completed') completed(lease, seq, ending.result)
    if (ending.status !== 'completed' && failed(world, lease, seq, ending)) isDead = true
  }
  if (lease.left.size === 0) world.drop([lease])
  return isDead
}

function completed({ partition, group, isRecorded }: Lease, seq: number, result: unknown): void {
  const { reports } = laneOf(partition, group)
  if (result !== undefined) {
    reports.set(seq, { ...reports.get(seq), result: JSON.stringify(result) })
  }
  if (result !== undefined || isRecorded) record(partition, group, seq)
}

export function record(partition: Partition, group: string, seq: number): void {
  const { recorded } = laneOf(partition, group)
  recorded.set(seq, (recorded.get(seq) ?? 0) + 1)
}

function failed(world: World, lease: Lease, seq: number, { status, code, delayMs }: Ending) {
  const { queue, partition, group, attempt } = lease
  const { deadLetterQueue, deadLetterTo } = queue.options
  const isOver = status === 'dlq' || (status !== 'retry' && attempt > retryLimitOf(lease, seq))
  if (isOver) {
    if (status !== 'dlq' && !deadLetterQueue && deadLetterTo === null) return false
    const message = partition.log.get(seq) as Message
    if (deadLetterTo !== null && hopsOf(message) < hopsMax) {
      moveLetter(world, lease, message, { status, code }, deadLetterTo)
      return true
    }
    const failedAt = world.now
    const letter = { group, partition, message, attempts: attempt, code: code ?? null, failedAt }
    queue.letters.push(letter)
    return true
  }
  const ladder = partition.log.get(seq)?.retryBackoffMs
  const options =
    ladder === undefined
      ? queue.options
      : { ...queue.options, retryBackoffMs: [...ladder], retryBackoff: null }
  const backoffMs = status === 'failed' ? backoffOf(options, attempt) : 0
  comeAgain(lease, seq, {
    attempts: status === 'retry' ? attempt - 1 : attempt,
    dueAt: world.now + (status === 'expired' ? 0 : (delayMs ?? backoffMs)),
    alone: status === 'expired',
    soft: false,
  })
  return false
}

/** How often the message may be delivered again. */
export function retryLimitOf({ partition, queue }: Lease, seq: number): number {
  return partition.log.get(seq)?.retryLimit ?? queue.options.retryLimit
}

const hopsMax = 5

function hopsOf({ headers }: Message): number {
  return Number(/"hops":(\d+)\}\}$/.exec(headers ?? '')?.[1] ?? 0)
}

/** The message is due in the other queue at once, as a new message. */
function moveLetter(
  world: World,
  { queue, partition, group, attempt }: Lease,
  message: Message,
  { status, code }: Ending,
  target: string,
): void {
  const given = code === undefined ? null : `it was ${code}`
  const letter = {
    id: message.id,
    queue: queue.name,
    partition: shown(partition),
    consumerGroup: group === '__QUEUE_MODE__' ? 'default' : group,
    attempts: attempt,
    errorCode: code ?? null,
    error: status === 'expired' ? 'the lease expired before the message was acknowledged' : given,
    failedAt: new Date(world.now).toISOString(),
    hops: hopsOf(message) + 1,
  }
  const others = (message.headers ?? '{}').replace(/,?"rouse-dead-letter":.*\}$/, '}').slice(1, -1)
  const headers = `{${others}${others === '' ? '' : ','}"rouse-dead-letter":${JSON.stringify(letter)}}`
  const { payload, traceId } = message
  world.scheduled.push({
    queue: target,
    partition: partitionFor(
      world.queues.get(target)?.options.ordering ?? defaults.ordering,
      shown(partition),
    ),
    dueAt: world.now,
    order: world.nextOrder(),
    origin: 'broker',
    message: { id: undefined, key: undefined, payload, headers, traceId },
  })
}

function backoffOf({ retryBackoffMs: ladder, retryBackoff }: Options, attempt: number): number {
  if (retryBackoff === null) return ladder?.[Math.min(attempt, ladder.length) - 1] ?? 0
  const { baseMs, factor, maxMs } = retryBackoff
  return Math.min(maxMs, baseMs * factor ** (attempt - 1))
}

export function release(world: World, lease: Lease): void {
  for (const seq of lease.left) {
    const { attempt } = lease
    comeAgain(lease, seq, { attempts: attempt - 1, dueAt: world.now, alone: false, soft: true })
  }
  world.drop([lease])
}

/** Adds the message to those to redeliver, unless a redrive has already added it. */
function comeAgain(
  { partition, group }: Lease,
  seq: number,
  again: { attempts: number; dueAt: number; alone: boolean; soft: boolean },
): void {
  const lane = laneOf(partition, group)
  if (!lane.again.has(seq)) lane.again.set(seq, again)
}

/** Expires leases, except those that an open transaction holds. */
export function reap(world: World): void {
  for (const lease of world.leases) {
    if (lease.expiresAt > world.now || lease.lockedBy !== undefined) continue
    const ending = { status: 'expired', code: 'lease_expired' } as const
    end(world, lease, [...lease.left], ending)
  }
}
