// Unique keys in the model. A key names the message that took it last; whether that one still has it follows
// from what became of it.
import { ageMsMax, type Message, type Partition, type Queue, type World } from './world.ts'

export interface UniqueKey {
  /** The message that took the key. */
  readonly id: string
  /** Undefined: until the message has ended. */
  readonly expiresAt: number | undefined
}

/** `started` is undefined if the model does not know whether a consumer has been given the message. */
export type Holding =
  | { readonly isHeld: false }
  | { readonly isHeld: true; readonly where: 'scheduled' }
  | { readonly isHeld: true; readonly where: 'log'; readonly started: boolean | undefined }

const free: Holding = { isHeld: false }

/** `recent` are the groups that were seen within an hour of the one that was seen last. */
export function holdingOf(
  world: World,
  queue: Queue,
  { id, expiresAt }: UniqueKey,
  recent: ReadonlySet<string>,
): Holding {
  if (expiresAt !== undefined && expiresAt <= world.now) return free
  if (world.cancelled.some((one) => one.id === id)) return free
  if (world.scheduled.some(({ message }) => message.id === id)) {
    return { isHeld: true, where: 'scheduled' }
  }
  const place = find(queue, id)
  if (place?.message.isCancelled) return free
  const state = place && stateIn(world, queue, place.partition, place.message, recent)
  if (state?.isOpen) return { isHeld: true, where: 'log', started: state.started }
  return expiresAt === undefined ? free : { isHeld: true, where: 'log', started: true }
}

/** Retention drops the keys of messages that it has removed: a redrive of their dead letters does not hold them. */
export function sweepKeys(world: World, queue: Queue): void {
  for (const [place, { id, expiresAt }] of queue.uniques) {
    const isScheduled = world.scheduled.some(({ message }) => message.id === id)
    if (expiresAt === undefined && !isScheduled && find(queue, id) === undefined) {
      queue.uniques.delete(place)
    }
  }
}

export function find(
  queue: Queue,
  id: string,
): { readonly partition: Partition; readonly message: Message } | undefined {
  for (const partition of queue.partitions.values()) {
    for (const message of partition.log.values()) {
      if (message.id === id) return { partition, message }
    }
  }
  return undefined
}

function stateIn(
  world: World,
  queue: Queue,
  partition: Partition,
  message: Message,
  recent: ReadonlySet<string>,
): { readonly isOpen: boolean; readonly started: boolean | undefined } {
  const { seq } = message
  const isOld = world.now - message.createdAt > ageMsMax(queue.options)
  const isKept = seq >= partition.tail
  let isOpen = queue.groups.size === 0 && isKept && !isOld
  let started: boolean | undefined = false
  for (const group of queue.groups) {
    const lane = partition.lanes.get(group)
    const again = lane?.again.get(seq)
    const isLeased = world.leases.some(
      (lease) => lease.partition === partition && lease.group === group && lease.left.has(seq),
    )
    if (isLeased) [isOpen, started] = [true, true]
    else if (again !== undefined) {
      // A released message may count as new again.
      if (started === false) started = again.soft ? undefined : true
      if (!again.soft) started = true
      if (recent.has(group) && (!isOld || lane?.redriven.has(seq))) isOpen = true
    } else if (lane === undefined || seq >= lane.next) {
      if (recent.has(group) && isKept && !isOld) isOpen = true
    } else started = true
  }
  return { isOpen, started }
}
