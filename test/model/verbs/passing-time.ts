// The clock, schedules, and retention.
import fc from 'fast-check'
import { kept, retentionLimits } from '../operating.ts'
import { sweepKeys } from '../unique.ts'
import {
  type Deed,
  must,
  mustAnswer,
  nameIn,
  nameOf,
  pick,
  type Scene,
  settle,
  verb,
} from '../verb.ts'
import type { Partition, Queue } from '../world.ts'
import { notFound } from './operating.ts'
import { workOff } from './supplying.ts'

export async function advance(scene: Scene, ms: number): Promise<void> {
  scene.world.now += ms
  await scene.product.setClock(scene.world.now)
  await settle(scene)
}

/** Runs retention and reads which messages it removed. */
export async function retain(scene: Scene): Promise<string> {
  await scene.product.retain()
  return followRetention(scene)
}

/**
 * `crossed` is set if another call was in progress, so that retention may have skipped what that call held.
 * It selects the partitions to follow.
 */
export async function followRetention(
  { world, product, prefix }: Scene,
  crossed?: (queue: Queue, partition: Partition) => boolean,
): Promise<string> {
  const rows = await product.sql<{
    queue: string
    partition: string
    tail: string
    seqs: string[]
  }>(
    `select q.name as queue, p.name as partition, p.tail,
       array(select m.seq from rouse.messages m where m.partition_id = p.id order by m.seq) as seqs
     from rouse.queues q join rouse.partitions p on p.queue_id = q.id where q.name like $1`,
    [`${prefix}%`],
  )
  const took: string[] = []
  world.cancelled = world.cancelled.filter(({ at }) => at > world.now - kept.deadMs)
  for (const queue of world.queues.values()) {
    queue.letters = queue.letters.filter(({ failedAt }) => failedAt > world.now - kept.deadMs)
    for (const partition of queue.partitions.values()) {
      if (crossed?.(queue, partition) === false) continue
      const row = rows.find((one) => one.queue === queue.name && one.partition === partition.name)
      if (row === undefined) removed(world.now, queue, partition)
      else {
        const gone = shrunk(
          { world, queue, partition, isCrossed: crossed !== undefined },
          row.seqs.map(Number),
          Number(row.tail),
        )
        if (gone.length > 0) took.push(`${nameIn(queue, partition)} ${gone.join(' ')}`)
      }
    }
    sweepKeys(world, queue)
  }
  return took.join(', ') || 'nothing'
}

function shrunk(
  place: Pick<Scene, 'world'> & { queue: Queue; partition: Partition; isCrossed: boolean },
  there: readonly number[],
  tail: number,
): number[] {
  const { world, queue, partition, isCrossed } = place
  const { least, most } = retentionLimits(world, queue, partition)
  const where = nameIn(queue, partition)
  const known = [...partition.log.keys()]
  const gone = known.filter((seq) => !there.includes(seq))
  const tooMany = gone.filter((seq) => seq >= most)
  must(
    tooMany.length === 0,
    `retention removed ${where} ${tooMany.join(' ')}; it may remove only below ${most}`,
  )
  const tooFew = isCrossed ? [] : there.filter((seq) => seq < least)
  must(
    tooFew.length === 0,
    `retention left ${where} ${tooFew.join(' ')}; it must remove everything below ${least}`,
  )
  for (const seq of gone) {
    partition.log.delete(seq)
    for (const { reports } of partition.lanes.values()) reports.delete(seq)
  }
  for (const lane of partition.lanes.values()) for (const seq of gone) lane.again.delete(seq)
  must(
    tail >= partition.tail && tail <= Math.max(most, partition.tail),
    `the tail of ${where} is ${tail}`,
  )
  partition.tail = tail
  return gone
}

function removed(now: number, queue: Queue, partition: Partition): void {
  const keys = [...partition.keys.values()].filter(({ until }) => until > now)
  const isIdle = partition.lastAt <= now - kept.idlePartitionMs
  const letters = queue.letters.filter((letter) => letter.partition === partition)
  const isEmpty = [...partition.log.keys()].every((seq) => seq < partition.head)
  const isRight = keys.length === 0 && isIdle && letters.length === 0 && isEmpty
  must(isRight, `partition ${partition.name} was removed too early`)
  queue.partitions.delete(partition.name)
}

export const passingTime = [
  verb({
    name: 'advance',
    weight: 10,
    args: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(1, 1_000, 10_000, 40_000) },
      { weight: 3, arbitrary: fc.constantFrom(301_000, 3_700_000) },
      { weight: 2, arbitrary: fc.constantFrom(90_000_000, 90_000_000, 90_000_000, 700_000_000) },
    ),
    async run(scene, ms): Promise<Deed> {
      await advance(scene, ms)
      return { did: `advance ${ms} ms`, effect: 'done' }
    },
  }),
  verb({
    name: 'retain',
    weight: 6,
    // Retention removes mostly messages that are completed and old, so the step usually makes some first.
    args: fc.record({
      worksOff: fc.constantFrom(undefined, 'completed' as const, 'dlq' as const),
      afterMs: fc.constantFrom(0, 0, 5_000, 110_000, 90_000_000, 90_000_000, 90_000_000),
    }),
    async run(scene, { worksOff, afterMs }): Promise<Deed> {
      if (worksOff !== undefined) {
        for (const { name, groups } of scene.world.queues.values()) {
          for (const group of groups) await workOff(scene, name, group, worksOff)
        }
      }
      if (afterMs > 0) await advance(scene, afterMs)
      const took = await retain(scene)
      return {
        did: `retain after ${afterMs} ms: ${took}`,
        effect: took === 'nothing' ? 'refused' : 'done',
      }
    },
  }),
  verb({
    name: 'schedule',
    weight: 2,
    args: fc.record({
      name: fc.constantFrom('s', 't'),
      catchUp: fc.constantFrom('none', 'last', 'all'),
      paused: fc.constantFrom(false, false, false, true),
    }),
    async run(scene, { name, catchUp, paused }): Promise<Deed> {
      const { world, product, prefix } = scene
      const schedule = { name: `${prefix}${name}`, queue: nameOf(scene, 'b'), catchUp }
      const payload = '{"tick":12345678901234567890}'
      const body = JSON.stringify({ ...schedule, partition: 'cron', cron: '0 * * * *', paused })
      const answer = await product.call(
        'POST',
        '/schedules',
        `${body.slice(0, -1)},"payload":${payload}}`,
      )
      mustAnswer(answer, 200)
      const hour = 3_600_000
      const nextAt = paused ? undefined : (Math.floor(world.now / hour) + 1) * hour
      world.schedules.set(schedule.name, {
        ...schedule,
        catchUp: catchUp as 'all',
        payload,
        nextAt,
      })
      return { did: `schedule ${body}`, effect: 'done' }
    },
  }),
  verb({
    name: 'unschedule',
    weight: 1,
    args: fc.record({ name: fc.constantFrom('s', 't'), there: fc.nat(3) }),
    async run({ world, product, prefix }, drawn): Promise<Deed> {
      const known = drawn.there > 0 ? pick([...world.schedules.keys()], drawn.there) : undefined
      const name = known?.slice(-1) ?? drawn.name
      const answer = await product.call('DELETE', `/schedules/${prefix}${name}`)
      if (!world.schedules.has(`${prefix}${name}`)) return notFound(answer, `unschedule ${name}`)
      mustAnswer(answer, 200)
      world.schedules.delete(`${prefix}${name}`)
      return { did: `unschedule ${name}`, effect: 'done' }
    },
  }),
]
