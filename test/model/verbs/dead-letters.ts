// Dead letters: redriven or deleted.
import fc from 'fast-check'
import { kept, redrive } from '../operating.ts'
import {
  type Deed,
  groupNames,
  must,
  mustAnswer,
  partitionNames,
  pick,
  type Scene,
  settle,
  verb,
} from '../verb.ts'
import { type Letter, type Queue, shown } from '../world.ts'
import { passOver } from './operating.ts'
import { advance, retain } from './passing-time.ts'
import { letterFor, workOff } from './supplying.ts'

const rarely = fc.nat(3).map((number) => number === 0)

/** A filter for dead letters: properties of an existing one, or arbitrary values. */
const where = fc.record({
  like: fc.record({ group: rarely, partition: rarely, code: rarely, id: rarely }),
  any: fc.oneof(
    { weight: 7, arbitrary: fc.constant(undefined) },
    fc.record({
      consumerGroup: fc.constantFrom(undefined, ...groupNames),
      partition: fc.constantFrom(undefined, ...partitionNames),
      errorCode: fc.constantFrom(undefined, 'E1', 'E2', 'lease_expired'),
    }),
  ),
  number: fc.nat(20),
})

type Where = typeof where extends fc.Arbitrary<infer Drawn> ? Drawn : never

interface Filter {
  readonly consumerGroup?: string | undefined
  readonly partition?: string | undefined
  readonly errorCode?: string | undefined
  readonly ids?: readonly string[] | undefined
}

function filterOf(of: Queue, { like, any, number }: Where): Filter {
  const one = pick(of.letters, number)
  if (any !== undefined || one === undefined) return any ?? {}
  return {
    consumerGroup: like.group ? one.group : undefined,
    partition: like.partition ? (shown(one.partition) ?? undefined) : undefined,
    errorCode: like.code ? (one.code ?? undefined) : undefined,
    ids: like.id ? [one.message.id as string] : undefined,
  }
}

function lettersOf(of: Queue, filter: Filter): Letter[] {
  return of.letters.filter(
    ({ group, partition, code, message }) =>
      (filter.consumerGroup === undefined || group === filter.consumerGroup) &&
      (filter.partition === undefined || partition.name === filter.partition) &&
      (filter.errorCode === undefined || code === filter.errorCode) &&
      (filter.ids === undefined || filter.ids.includes(message.id as string)),
  )
}

/** A queue with dead letters; any queue if there is none. */
async function queueFor(scene: Scene, number: number): Promise<Queue | undefined> {
  const queues = [...scene.world.queues.values()]
  const found = await letterFor(scene, number)
  return found ?? pick(queues, number)
}

/** Consumes everything else of the queue and has it removed, so that the dead letters outlive the log. */
async function outliveLog(scene: Scene, of: Queue): Promise<void> {
  for (const group of of.groups) await workOff(scene, of.name, group, 'completed')
  await advance(scene, kept.completedMs + 1_000)
  scene.lines.push(`retain a day later: ${await retain(scene)}`)
}

export const letters = [
  verb({
    name: 'redrive',
    weight: 10,
    args: fc.record({
      where,
      dryRun: fc.nat(7).map((number) => number === 0),
      late: fc.nat(2).map((number) => number === 0),
    }),
    async run(scene, args): Promise<Deed> {
      const { world, product } = scene
      const found = await queueFor(scene, args.where.number)
      if (found === undefined) return undefined
      if (args.late) await outliveLog(scene, found)
      const filter = filterOf(found, args.where)
      const chosen = lettersOf(found, filter)
      // A redelivery that is too old but still there takes in the redriven message, which then waits until
      // that redelivery is due. If a pop has dropped it, the message is due at once.
      await passOver(scene, found)
      const body = { queue: found.name, where: filter, dryRun: args.dryRun }
      const answer = await product.call('POST', '/dlq/redrive', body)
      const did = `redrive ${JSON.stringify(body)}: ${chosen.length}`
      mustAnswer(answer, args.dryRun ? 200 : 202)
      must(
        answer.body.total === chosen.length,
        `redrives ${answer.body.total} instead of ${chosen.length}`,
      )
      if (!args.dryRun) {
        redrive(world, found, chosen)
        await settle(scene)
      }
      return { did, effect: chosen.length > 0 ? 'done' : 'refused' }
    },
  }),
  verb({
    name: 'delete dead letters',
    weight: 1,
    args: where,
    async run(scene, drawn): Promise<Deed> {
      const found = await queueFor(scene, drawn.number)
      if (found === undefined) return undefined
      const { ids: _, ...filter } = filterOf(found, drawn)
      const chosen = lettersOf(found, filter)
      const given = Object.entries({ queue: found.name, ...filter }).filter(
        ([, value]) => value !== undefined,
      )
      const query = new URLSearchParams(given as [string, string][]).toString()
      const answer = await scene.product.call('DELETE', `/dlq?${query}`)
      mustAnswer(answer, 200)
      must(
        answer.body.deleted === chosen.length,
        `deleted ${answer.body.deleted} instead of ${chosen.length}`,
      )
      found.letters = found.letters.filter((letter: Letter) => !chosen.includes(letter))
      return {
        did: `delete dead letters ${query}: ${chosen.length}`,
        effect: chosen.length > 0 ? 'done' : 'refused',
      }
    },
  }),
]
