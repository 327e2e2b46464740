// Two concurrent calls: a pop is stopped at a barrier in the database while retention runs.
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { offerOf } from '../delivering.ts'
import type { Answer, Product } from '../product.ts'
import { type Deed, nameOf, type Scene, verb } from '../verb.ts'
import type { Partition, Queue } from '../world.ts'
import { type PoppedMessage, pathOf, placeOf, popArgs, popped } from './consuming.ts'
import { configure } from './operating.ts'
import { advance, followRetention } from './passing-time.ts'
import { plainItem, push } from './producing.ts'
import { placeToPop, workOff } from './supplying.ts'

const places = [
  'pop-lane-locked',
  'pop-lane-offered',
  'pop-lane-settling',
  'pop-lane-leased',
  'pop-lanes-locked',
  'pop-lanes-offered',
  'pop-lanes-settling',
  'pop-lanes-leased',
  'pop-locked',
  'pop-offered',
  'pop-leased',
  'pop-written',
] as const

/**
 * Runs `meanwhile` while the call waits at the barrier. If the call ends without reaching the barrier,
 * `meanwhile` does not run.
 */
async function whileAt<Result>(
  { database, sql }: Product,
  place: string,
  call: () => Promise<Result>,
  meanwhile: () => Promise<void>,
): Promise<Result> {
  const barrier = await database.armBarrier(place)
  let isOver = false
  const result = call().finally(() => {
    isOver = true
  })
  const standing = `select from pg_locks where locktype = 'advisory' and not granted and objid = hashtext($1)::oid`
  while (!isOver && (await sql(standing, [place])).length === 0) await setImmediate()
  try {
    if (!isOver) await meanwhile()
  } finally {
    await barrier.release()
  }
  return result
}

/** Ages the pending messages until retention removes them even though they were not consumed. */
async function age(scene: Scene, number: number): Promise<void> {
  const place = await placeToPop(scene, number)
  if (place === undefined) return
  const { from: queue } = place
  // All retries are completed first, because they would keep all later messages.
  for (const group of scene.world.queueOf(nameOf(scene, queue)).groups) {
    await workOff(scene, nameOf(scene, queue), group, 'completed')
  }
  const { did } = await push(scene, [
    { ...plainItem, queue },
    { ...plainItem, queue },
  ])
  const options = { retentionSeconds: 50 }
  const deed = await configure(scene, { queue, options })
  await advance(scene, 51_000)
  scene.lines.push(did, deed?.did ?? '', 'advance 51000 ms')
}

/**
 * Whether a pop got the first message of the partition before retention ran; otherwise the pop saw only what
 * retention had left.
 */
function isAsBefore(
  scene: Scene,
  group: string,
  queue: Queue,
  partition: Partition,
  { body, text }: Answer,
): boolean {
  const messages = (body?.messages ?? []) as PoppedMessage[]
  const got = messages.find((one) => placeOf(scene, one, text)?.partition === partition)
  if (got === undefined || !queue.groups.has(group)) return false
  return offerOf(scene.world, queue, partition, group).messages[0]?.message.seq === got.seq
}

export const crossing = [
  verb({
    name: 'pop while retaining',
    weight: 4,
    args: fc.record({
      pop: popArgs,
      place: fc.constantFrom(...places),
      number: fc.nat(20),
      ages: fc.nat(3).map((one) => one > 0),
    }),
    async run(scene, { pop, place, number, ages }): Promise<Deed> {
      if (ages) await age(scene, number)
      const from = await placeToPop(scene, number)
      if (from === undefined) return undefined
      // Only a pop of one partition reaches the barriers of the short path, and it reaches no others.
      const partitions = place.startsWith('pop-lane-') ? 1 : Math.max(2, pop.partitions)
      const args = { ...pop, ...from, partitions, wait: false }
      const path = pathOf(scene, args)
      const { product } = scene
      let isCrossed = false
      const answer = await whileAt(
        product,
        place,
        () => product.call('GET', path),
        async () => {
          isCrossed = true
          await product.retain()
        },
      )
      if (!isCrossed)
        return { did: `pop ${path}: ${popped(scene, args, answer)}`, effect: 'refused' }
      const isFirst = (queue: Queue, partition: Partition) =>
        !isAsBefore(scene, args.group, queue, partition, answer)
      const before = await followRetention(scene, isFirst)
      const came = popped(scene, args, answer)
      const took = await followRetention(scene, () => true)
      return {
        did: `pop ${path}: ${came}; retained at ${place}: ${before}, ${took}`,
        effect: 'done',
      }
    },
  }),
]
