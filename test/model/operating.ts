// What operators and retention do to queues.
import {
  ageMsMax,
  freshOf,
  inOrder,
  isExpired,
  type Letter,
  laneOf,
  type Message,
  mayBeFresh,
  newLane,
  nextOpen,
  type Partition,
  type Queue,
  type World,
} from './world.ts'

/** Creates the group at its position; an existing group stays where it is. */
export function subscribe(queue: Queue, group: string, from: number | 'all'): void {
  if (queue.groups.has(group)) return
  queue.groups.add(group)
  for (const partition of queue.partitions.values()) {
    partition.lanes.set(group, newLane(from === 'all' ? partition.tail : seqAt(partition, from)))
  }
}

/** Moves a group; with `only`, in that partition. */
export function seek(
  world: World,
  queue: Queue,
  group: string,
  to: number | 'end',
  only?: Partition,
): void {
  const leases = world.leasesOf(queue, group)
  world.drop(leases.filter(({ partition }) => only === undefined || partition === only))
  for (const partition of only === undefined ? queue.partitions.values() : [only]) {
    const lane = laneOf(partition, group)
    lane.again.clear()
    lane.next = to === 'end' ? partition.head : seqAt(partition, to)
  }
}

/** The seq of the first message that was stored at that time or later. */
function seqAt(partition: Partition, time: number): number {
  const found = inOrder(partition.log).find(
    ({ seq, createdAt }) => seq >= partition.tail && createdAt >= time,
  )
  return found?.seq ?? partition.head
}

/** Returns how many messages were removed. */
export function purge(world: World, queue: Queue): number {
  world.drop(world.leasesOf(queue))
  const waiting = world.scheduled.filter((one) => one.queue === queue.name)
  world.scheduled = world.scheduled.filter((one) => one.queue !== queue.name)
  world.cancelled = world.cancelled.filter((one) => one.queue !== queue.name)
  queue.uniques.clear()
  let count = waiting.length
  for (const partition of queue.partitions.values()) {
    count += partition.head - partition.tail
    partition.tail = partition.head
    partition.log.clear()
    for (const { reports } of partition.lanes.values()) reports.clear()
    partition.keys.clear()
    for (const lane of partition.lanes.values()) lane.again.clear()
  }
  return count
}

export function deleteQueue(world: World, queue: Queue): void {
  world.drop(world.leasesOf(queue))
  world.scheduled = world.scheduled.filter((one) => one.queue !== queue.name)
  world.cancelled = world.cancelled.filter((one) => one.queue !== queue.name)
  world.queues.delete(queue.name)
}

export function deleteGroup(world: World, queue: Queue, group: string): void {
  world.drop(world.leasesOf(queue, group))
  queue.groups.delete(group)
  queue.fullAt.delete(group)
  queue.letters = queue.letters.filter((letter) => letter.group !== group)
  for (const partition of queue.partitions.values()) partition.lanes.delete(group)
}

/**
 * Puts dead letters back into their group and position, with attempts counted from one. A message that is
 * still pending in the group is not added a second time.
 */
export function redrive(world: World, queue: Queue, letters: readonly Letter[]): void {
  queue.letters = queue.letters.filter((letter) => !letters.includes(letter))
  for (const { partition, group, message } of letters) {
    const lane = laneOf(partition, group)
    const { seq } = message
    lane.redriven.add(seq)
    if (!partition.log.has(seq)) partition.log.set(seq, { ...message, expiresAt: undefined })
    const oldest = world.now - ageMsMax(queue.options)
    const isFresh = seq >= Math.max(lane.next, partition.tail)
    // The message is too old to be delivered: the cursor moves past it, and only its dead letter is
    // delivered.
    const isPassed = isFresh && message.createdAt < oldest
    if (isPassed) lane.next = seqAt(partition, oldest)
    const kept = partition.log.get(seq)
    // The cursor delivers the message, which does not expire any more.
    if (isFresh && !isPassed && kept !== undefined) kept.expiresAt = undefined
    if ((isFresh && !isPassed) || lane.again.has(seq)) continue
    if (isHeldWithoutOrder(world, queue, group, partition, seq)) continue
    lane.again.set(seq, { attempts: 0, dueAt: world.now, alone: false, soft: true })
  }
}

/** After a seek back the message of a dead letter may be leased again. */
function isHeldWithoutOrder(
  world: World,
  queue: Queue,
  group: string,
  partition: Partition,
  seq: number,
): boolean {
  return world
    .leasesOf(queue, group)
    .some((lease) => lease.partition === partition && !lease.isOrdered && lease.left.has(seq))
}

/**
 * The number of messages that count against the maxSize of a queue: those that its slowest group has not
 * completed, and the scheduled ones. Messages that are too old for delivery count until a pop reaches them,
 * so there is a minimum and a maximum.
 */
export function sizesOf(
  world: World,
  queue: Queue,
): { readonly least: number; readonly most: number } {
  const waiting = world.scheduled.filter((one) => one.queue === queue.name).length
  const partitions = [...queue.partitions.values()]
  const kept = partitions.reduce(
    (sum, { head, tail, log }) => sum + head - tail - excludedFrom(world, log, tail),
    0,
  )
  const byGroup = [...queue.groups].map((group) => {
    const held = world.leasesOf(queue, group).reduce((sum, { left }) => sum + left.size, 0)
    const seqs = partitions.flatMap((partition) => [
      ...freshOf(partition, group),
      ...[...laneOf(partition, group).again.keys()].map((seq) => partition.log.get(seq) as Message),
    ])
    const young = seqs.filter(
      (message) =>
        world.now - message.createdAt <= ageMsMax(queue.options) && !isExpired(world, message),
    )
    return { least: held + young.length, most: held + seqs.length }
  })
  const largest = (sizes: number[]) => waiting + (sizes.length === 0 ? kept : Math.max(...sizes))
  return {
    least: largest(byGroup.map(({ least }) => least)),
    most: largest(byGroup.map(({ most }) => most)),
  }
}

function excludedFrom(world: World, log: ReadonlyMap<number, Message>, from: number): number {
  return [...log.values()].filter(
    (message) => message.seq >= from && (message.isCancelled || isExpired(world, message)),
  ).length
}

export const kept = {
  completedMs: 86_400_000,
  deadMs: 14 * 86_400_000,
  tracesMs: 7 * 86_400_000,
  idlePartitionMs: 7 * 86_400_000,
}

/**
 * How far retention removes messages. It removes messages that are old enough and completed by every group,
 * and messages that are older than the queue allows. Leases and retries keep their messages and all later
 * ones. A retry that is itself too old may or may not keep messages, because the next pop drops it, unless it
 * is redriven. A released message may or may not keep messages, because it may count as new. Messages that
 * have expired or were cancelled go when completed ones would, whatever groups have read.
 */
export function retentionLimits(world: World, queue: Queue, partition: Partition) {
  const { options } = queue
  const completedSeconds = options.completedRetentionSeconds
  const completedMs =
    completedSeconds === 0
      ? kept.completedMs
      : completedSeconds < 0
        ? Infinity
        : completedSeconds * 1_000
  const evictMs = Math.min(ageMsMax(options), (options.retentionSeconds || Infinity) * 1_000)
  const lanes = [...partition.lanes.values()]
  const givenBack = lanes.flatMap((lane) =>
    [...lane.again.keys()].filter((seq) => mayBeFresh(lane, seq)),
  )
  const evictedTo = olderThan(world, partition, evictMs)
  /** `nexts` are the cursors of the groups, `back` the released messages that a cursor may have gone back to. */
  const wantedFor = (nexts: readonly number[], back: readonly number[]): number => {
    const completedTo = Math.min(
      nexts.length === 0 ? 0 : Math.min(...nexts, ...back),
      olderThan(world, partition, completedMs),
    )
    return options.retentionEnabled ? Math.max(completedTo, evictedTo) : 0
  }
  const leased = world.leases.flatMap((lease) =>
    lease.partition === partition ? [...lease.left] : [],
  )
  const again = lanes.flatMap((lane) => [...lane.again.keys()])
  const isOld = (seq: number) =>
    world.now - (partition.log.get(seq)?.createdAt ?? 0) > ageMsMax(options) ||
    isExpired(world, partition.log.get(seq) as Message)
  const keeping = lanes.flatMap((lane) =>
    [...lane.again.keys()].filter(
      (seq) => !mayBeFresh(lane, seq) && (lane.redriven.has(seq) || !isOld(seq)),
    ),
  )
  const nexts = lanes.map(({ next }) => next)
  // A pop may have passed a released message that has expired.
  const mostWanted = wantedFor(
    nexts.map((next) => nextOpen(world, partition, next)),
    givenBack.filter((seq) => !isOld(seq)),
  )
  const limit = (wanted: number, held: readonly number[]) =>
    Math.min(Math.max(partition.tail, wanted), ...held)
  return {
    least: limit(wantedFor(nexts, givenBack), [...leaseStarts(world, partition), ...again]),
    most: limit(options.retentionEnabled ? nextOpen(world, partition, mostWanted) : mostWanted, [
      ...leased,
      ...keeping,
    ]),
  }
}

/** A lease keeps messages from its first one on, even if that one has ended. */
function leaseStarts(world: World, partition: Partition): number[] {
  return world.leases.flatMap((lease) => (lease.partition === partition ? [lease.from] : []))
}

function olderThan(world: World, partition: Partition, ms: number): number {
  return ms === Infinity ? 0 : seqAt(partition, world.now - ms)
}
