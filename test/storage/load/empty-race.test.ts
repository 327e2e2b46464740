// A lane that becomes empty races with a push. Settling must never clear `ready` for a message that is being
// pushed: no pop would read that lane again before the next push.
import { randomUUID } from 'node:crypto'
import { ack, type Executor, type PopResult, pop, push } from '@rouse/storage'
import { test } from 'tap'
import { inconsistencies } from '../support/consistency.ts'
import { loadDatabase, loadMessageCount, untilNoRetry } from '../support/load.ts'

const lanes = 8
const iterationsPerLane = Math.ceil(loadMessageCount / 8 / lanes)
const queue = 'race'
const lanesOf = Array.from({ length: lanes }, (_, i) => `lane ${i}`)

test('the next pop finds a message whose push has returned', async (t) => {
  const { pool, clients } = await loadDatabase(t, lanes)
  await push(pool, lanesOf.map(makeItem))
  await consumeAll(pool, lanesOf)
  // One connection per lane: no two calls race on a lane, but all lanes share pages and indexes.
  const missed = await Promise.all(
    lanesOf.map(async (partition, i) => {
      const client = clients[i] as Executor
      for (let n = 0; n < iterationsPerLane; n += 1) {
        const item = makeItem(partition)
        await push(client, [item])
        const { status, leases } = await popNow(client, { queue, partition })
        const [lease] = leases
        if (lease?.messages[0]?.id !== item.id) return `${partition} said ${status} at push ${n}`
        await untilNoRetry(() => ack(client, [{ leaseId: lease.leaseId }]))
      }
      return undefined
    }),
  )
  t.same(missed.filter(Boolean), [])
  t.same(await inconsistencies(pool), [])
})

test('pops alone find a push that comes while its lane becomes empty', async (t) => {
  const { pool, clients } = await loadDatabase(t, lanes * 2)
  await push(pool, lanesOf.map(makeItem))
  await consumeAll(pool, lanesOf)
  const lost = await Promise.all(
    lanesOf.map(async (partition, i) => {
      const [pusher, popper] = [clients[i * 2], clients[i * 2 + 1]] as [Executor, Executor]
      const answered = new Set<string>()
      const received = new Set<string>()
      let pushing = true
      async function pushAll(): Promise<void> {
        for (let n = 0; n < iterationsPerLane; n += 1) {
          const item = makeItem(partition)
          await push(pusher, [item])
          answered.add(item.id)
        }
        pushing = false
      }
      async function popAll(): Promise<string | undefined> {
        for (;;) {
          const due = [...answered].filter((id) => !received.has(id))
          const last = !pushing
          const { status, leases } = await popNow(popper, { queue, partition })
          for (const lease of leases) for (const { id } of lease.messages) received.add(id)
          const [lease] = leases
          if (lease !== undefined) {
            await untilNoRetry(() => ack(popper, [{ leaseId: lease.leaseId }]))
          } else if (due.length > 0) return `${partition} said ${status}, but ${due.length} wait`
          else if (last) return undefined
          for (const id of answered) {
            if (received.delete(id)) answered.delete(id)
          }
        }
      }
      const [, problem] = await Promise.all([pushAll(), popAll()])
      return problem
    }),
  )
  t.same(lost.filter(Boolean), [])
  t.same(await inconsistencies(pool), [])
})

test('pops of a whole queue find what is pushed into any of its lanes', async (t) => {
  const { pool, clients } = await loadDatabase(t, lanes * 2)
  const pushed: string[] = []
  const received = new Set<string>()
  await push(pool, lanesOf.map(makeItem))
  await consumeAll(pool, lanesOf)
  let pushers = lanes
  async function pushAll(client: Executor, partition: string): Promise<void> {
    for (let n = 0; n < iterationsPerLane; n += 1) {
      const item = makeItem(partition)
      await push(client, [item])
      pushed.push(item.id)
    }
    pushers -= 1
  }
  async function popAll(client: Executor): Promise<void> {
    for (;;) {
      const last = pushers === 0
      const { leases } = await popNow(client, { queue })
      for (const lease of leases) {
        await untilNoRetry(() => ack(client, [{ leaseId: lease.leaseId }]))
        for (const { id } of lease.messages) received.add(id)
      }
      if (leases.length === 0 && last) return
    }
  }
  await Promise.all([
    ...lanesOf.map((partition, i) => pushAll(clients[i] as Executor, partition)),
    ...clients.slice(lanes).map(popAll),
  ])
  const missed = pushed.filter((id) => !received.has(id))
  t.same(missed, [], 'all were delivered before the pops found nothing')
  t.same(await inconsistencies(pool), [])
})

function makeItem(partition: string): {
  queue: string
  partition: string
  id: string
  payload: string
} {
  return { queue, partition, id: randomUUID(), payload: '{}' }
}

/** Pops without waiting for messages. Repeats a pop that is `contended`: another call had locked the lane. */
async function popNow(
  executor: Executor,
  source: { queue: string; partition?: string },
): Promise<PopResult> {
  const demands = [{ batch: 10, partitions: 1, holder: 'test' }]
  for (;;) {
    const result = await untilNoRetry(() => pop(executor, { source, group: 'g', demands }))
    if (result.status !== 'contended') return result
  }
}

async function consumeAll(executor: Executor, partitions: readonly string[]): Promise<void> {
  for (const partition of partitions) {
    const { leases } = await popNow(executor, { queue, partition })
    await ack(
      executor,
      leases.map(({ leaseId }) => ({ leaseId })),
    )
  }
}
