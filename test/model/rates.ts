// The buckets behind rate and partitionRate: of a group, and of a lane.
import { laneOf, type Options, type Partition, type Queue, shown, type World } from './world.ts'

export interface Rate {
  readonly limit: number
  readonly perMs: number
}

/** The deliveries that the rate of the queue allows a group now. */
export function tokensOf(world: World, { options, fullAt }: Queue, group: string): number {
  return tokens(world.now, options.rate, fullAt.get(group))
}

export function laneTokensOf(
  world: World,
  { options }: Queue,
  partition: Partition,
  group: string,
): number {
  const rate = shown(partition) === null ? null : options.partitionRate
  return tokens(world.now, rate, laneOf(partition, group).fullAt)
}

/** Takes a token for each delivery out of both buckets. */
export function spend(
  { now }: World,
  queue: Queue,
  partition: Partition,
  group: string,
  count: number,
): void {
  const { rate, partitionRate } = queue.options
  const lane = laneOf(partition, group)
  if (rate !== null) queue.fullAt.set(group, after(now, rate, queue.fullAt.get(group), count))
  if (partitionRate !== null && shown(partition) !== null)
    lane.fullAt = after(now, partitionRate, lane.fullAt, count)
}

/**
 * Buckets keep the time at which they will be full, but are full after `perMs` of the new rate at the latest.
 */
export function changeRates({ now }: World, queue: Queue, next: Options): void {
  const { rate, partitionRate } = next
  if (isOther(queue.options.rate, rate)) {
    for (const [group, fullAt] of queue.fullAt) {
      if (rate === null) queue.fullAt.delete(group)
      else queue.fullAt.set(group, Math.min(fullAt, now + rate.perMs))
    }
  }
  if (!isOther(queue.options.partitionRate, partitionRate)) return
  for (const partition of queue.partitions.values()) {
    for (const lane of partition.lanes.values()) {
      if (partitionRate === null) lane.fullAt = undefined
      else if (lane.fullAt !== undefined) {
        lane.fullAt = Math.min(lane.fullAt, now + partitionRate.perMs)
      }
    }
  }
}

function isOther(one: Rate | null, other: Rate | null): boolean {
  return one?.limit !== other?.limit || one?.perMs !== other?.perMs
}

function tokens(now: number, rate: Rate | null, fullAt: number | undefined): number {
  if (rate === null) return Infinity
  const { limit, perMs } = rate
  if (fullAt === undefined) return limit
  return Math.max(0, Math.min(limit, Math.floor(((now - fullAt + perMs) * limit) / perMs)))
}

function after(now: number, { limit, perMs }: Rate, fullAt: number | undefined, count: number) {
  return Math.max(fullAt ?? now, now) + (count * perMs) / limit
}
