// Gives a verb something to work on: in a randomly generated state most verbs would find no target.
import { end } from '../delivering.ts'
import { mustAnswer, pick, pickDelivery, type Scene, settleMoved } from '../verb.ts'
import type { Delivery, Queue } from '../world.ts'
import { anyPop, type PopArgs, pathOf, popped, waiting } from './consuming.ts'
import { plainItem, push } from './producing.ts'

/**
 * A delivery that can still end; if there is none, pops a deliverable message. `stale`: any past delivery.
 */
export async function deliveryFor(
  scene: Scene,
  number: number,
  stale: boolean,
): Promise<Delivery | undefined> {
  const found = pickDelivery(scene.world, number, stale)
  if (found !== undefined) return found
  const place = await placeToPop(scene, number)
  if (place === undefined) return undefined
  await popNow(scene, {
    ...anyPop,
    ...place,
    batch: 1 + (number % 3),
    partitions: 1 + (number % 2),
  })
  return pickDelivery(scene.world, number, false)
}

/** A queue with a deliverable message; if there is none, resumes a paused queue or pushes a message. */
export async function placeToPop(
  scene: Scene,
  number: number,
): Promise<Pick<PopArgs, 'from' | 'group' | 'partition'> | undefined> {
  const place = pick(waiting(scene), number)
  if (place !== undefined) return place
  const { world, product, lines } = scene
  for (const queue of world.queues.values()) {
    if (!queue.paused) continue
    mustAnswer(await product.call('POST', `/queues/${queue.name}/resume`), 200)
    queue.paused = false
    lines.push(`resume ${queue.name.slice(-1)}`)
  }
  if (waiting(scene).length === 0) lines.push(await pushNow(scene, number))
  const hasGroup = [...world.queues.values()].some(({ groups }) => groups.size > 0)
  // The first pop creates the group.
  return pick(waiting(scene), number) ?? (hasGroup ? undefined : firstPop)
}

const firstPop = { from: 'a', group: '__QUEUE_MODE__', partition: undefined }

/** Pushes a message, to a queue that a group consumes if there is one. */
async function pushNow(scene: Scene, number: number): Promise<string> {
  const queues = [...scene.world.queues.values()].filter(({ groups }) => groups.size > 0)
  const queue = pick(queues, number)?.name.slice(-1) ?? 'a'
  const partition = number % 3 === 0 ? 'p' : undefined
  const first = { ...plainItem, queue, partition }
  const { did } = await push(scene, [first, { ...plainItem, queue }])
  return did
}

/** A queue with dead letters; if there is none, ends a delivery as a dead letter. */
export async function letterFor(scene: Scene, number: number): Promise<Queue | undefined> {
  const { world } = scene
  const found = pick(
    [...world.queues.values()].filter(({ letters }) => letters.length > 0),
    number,
  )
  if (found !== undefined) return found
  const delivery = await deliveryFor(scene, number, false)
  if (delivery === undefined || delivery.lease.lockedBy !== undefined) return undefined
  const { lease, seq, receipt } = delivery
  mustAnswer(await scene.product.call('POST', '/ack', { receipt, status: 'dlq' }), 200)
  end(world, lease, [seq], { status: 'dlq' })
  await settleMoved(scene)
  scene.lines.push(
    `fail ${lease.queue.name.slice(-1)}/${lease.partition.name} ${seq} into a dead letter`,
  )
  return lease.queue
}

/** Pops and ends every message that is deliverable now for the group. Returns how many there were. */
export async function workOff(
  scene: Scene,
  queue: string,
  group: string,
  status: 'completed' | 'dlq',
): Promise<number> {
  let count = 0
  for (;;) {
    const came = await popNow(scene, { ...anyPop, from: queue.slice(-1), group })
    if (came.length === 0) return count
    count += came.length
    const ended = await scene.product.call('POST', '/ack/batch', {
      leaseId: came[0]?.lease.id,
      status,
    })
    mustAnswer(ended, 200)
    for (const { lease, seq } of came) end(scene.world, lease, [seq], { status })
    await settleMoved(scene)
  }
}

async function popNow(scene: Scene, args: PopArgs): Promise<Delivery[]> {
  const path = pathOf(scene, args)
  const answer = await scene.product.call('GET', path)
  const before = scene.world.deliveries.length
  const came = popped(scene, args, answer)
  const deliveries = scene.world.deliveries.slice(before)
  if (deliveries.length > 0) scene.lines.push(`pop ${path}: ${came}`)
  return deliveries
}
