// The end of a sequence: every remaining message is delivered, exactly as expected, and then nothing is left.
import { compare, mustBeEmpty } from './compare.ts'
import { allowed, offerOf } from './delivering.ts'
import { deleteQueue, kept } from './operating.ts'
import { changeRates } from './rates.ts'
import { must, mustAnswer, type Scene, settle } from './verb.ts'
import { commit } from './verbs/own-transactions.ts'
import { advance, retain } from './verbs/passing-time.ts'
import { workOff } from './verbs/supplying.ts'

const roundsMax = 100

export async function drain(scene: Scene): Promise<void> {
  const { world, product } = scene
  for (const own of world.transactions.slice()) await commit(scene, own)
  for (const name of Array.from(world.schedules.keys())) {
    mustAnswer(await product.call('DELETE', `/schedules/${name}`), 200)
    world.schedules.delete(name)
  }
  for (const queue of world.queues.values()) {
    mustAnswer(await product.call('POST', `/queues/${queue.name}/resume`), 200)
    queue.paused = false
    const none = { rate: null, partitionRate: null }
    mustAnswer(await product.call('POST', '/configure', { queue: queue.name, options: none }), 200)
    changeRates(world, queue, { ...queue.options, ...none })
    queue.options = { ...queue.options, ...none }
  }
  await compare(scene)
  for (let round = 0; ; round += 1) {
    must(round < roundsMax, 'the model does not drain')
    for (const queue of world.queues.values()) {
      for (const group of queue.groups) await workOff(scene, queue.name, group, 'completed')
    }
    const next = nextTime(scene)
    if (next === undefined) break
    await advance(scene, next - world.now)
  }
  await compare(scene)
  await retain(scene)
  await compare(scene)
  await remove(scene)
}

/** When the next message becomes deliverable; undefined: never. */
function nextTime({ world }: Scene): number | undefined {
  const times = [
    ...world.scheduled.map(({ dueAt }) => dueAt),
    ...world.leases.map(({ expiresAt }) => expiresAt),
  ]
  for (const queue of world.queues.values()) {
    for (const partition of queue.partitions.values()) {
      for (const [group, lane] of partition.lanes) {
        times.push(...[...lane.again.values()].map(({ dueAt }) => dueAt))
        times.push(partition.lastAt + queue.options.windowBuffer * 1_000)
        const { least } = offerOf(world, queue, partition, group)
        const mustWait = allowed(world, queue, group) === 0
        must(least === 0 || mustWait, `${partition.name} still has messages for ${group}`)
      }
    }
  }
  const later = times.filter((time) => time > world.now)
  return later.length === 0 ? undefined : Math.min(...later)
}

async function remove(scene: Scene): Promise<void> {
  const { world, product } = scene
  for (const queue of Array.from(world.queues.values())) {
    mustAnswer(await product.call('DELETE', `/resources/queues/${queue.name}`), 200)
    deleteQueue(world, queue)
  }
  await settle(scene)
  // The attempts of an idle partition are kept for as long as dead letters.
  await advance(scene, kept.deadMs)
  await product.retain()
  await mustBeEmpty(scene)
}
