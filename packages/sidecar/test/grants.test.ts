// What a worker does with grants that cross with other things.
import type { WaitGroup } from '@rouse/protocol'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import type { Grant, GrantOutcome } from '../src/index.ts'
import { item, pushOne, spec, startSidecar } from './support/start-sidecar.ts'

/** A sidecar whose grants are made by hand, with lanes that exist. */
async function startByHand(t: Parameters<typeof startSidecar>[0], queues: readonly string[]) {
  const started = await startSidecar(t)
  const { sidecar, coordinator } = started
  for (const queue of queues) {
    await pushOne(sidecar, item(queue))
    await sidecar.submit({ kind: 'POP', pop: spec(queue, { autoAck: true }) })
  }
  const outcomes = new Map<number, GrantOutcome>()
  coordinator.requestGrant = () => {}
  coordinator.notifyMessageAvailable = () => {}
  coordinator.releaseGroup = (grant, outcome) => outcomes.set(grant.grantId, outcome)
  let grantId = 0
  const describe = (queue: string): WaitGroup => ({ source: { queue }, group: 'g' })
  return {
    ...started,
    outcomes,
    /** Returns its number. */
    grant(queue: string): number {
      grantId += 1
      const grant: Grant = { description: describe(queue), grantId }
      sidecar.onGrant(grant)
      return grantId
    },
    waits(queue: string, signal: AbortSignal = new AbortController().signal) {
      return sidecar.submit({ kind: 'POP_WAIT', pop: spec(queue), timeoutMs: 20_000, signal })
    },
  }
}

test('a grant that meets an older pop of the same group does not call its waiters gone', async (t) => {
  const worker = await startByHand(t, ['orders'])
  const { database, sidecar, outcomes } = worker
  const waiting = worker.waits('orders')
  const barrier = await database.armBarrier('pop-lane-locked')
  const older = worker.grant('orders')
  await barrier.reached()
  const newer = worker.grant('orders')
  t.equal(outcomes.get(newer), 'contended', 'the waiter is there, in the older pop')
  await barrier.release()
  await eventually(() => outcomes.get(older))
  t.equal(outcomes.get(older), 'empty')
  await pushOne(sidecar, item('orders', { payload: '"x"' }))
  worker.grant('orders')
  t.equal((await waiting).leases[0]?.messages[0]?.payload, '"x"')
})

test('who comes while a grant waits for a slot is popped for', async (t) => {
  const busy = ['a', 'b', 'c', 'd']
  const worker = await startByHand(t, [...busy, 'orders'])
  const { database, sidecar, outcomes, coordinator } = worker
  const barrier = await database.armBarrier('pop-lane-locked')
  for (const queue of busy) {
    void worker.waits(queue)
    worker.grant(queue)
  }
  await barrier.reached(busy.length)
  const client = new AbortController()
  const left = worker.waits('orders', client.signal)
  const granted = worker.grant('orders')
  client.abort()
  t.same((await left).leases, [])
  t.equal(coordinator.waitingOf('orders'), 0)
  const came = worker.waits('orders')
  await pushOne(sidecar, item('orders', { payload: '"x"' }))
  await barrier.release()
  t.equal((await came).leases[0]?.messages[0]?.payload, '"x"')
  await eventually(() => outcomes.get(granted))
  t.equal(outcomes.get(granted), 'messages')
})

test('who came before the primary knew the worker is told of when it does, and popped for', async (t) => {
  const { sidecar, coordinator } = await startSidecar(t)
  await pushOne(sidecar, item('orders', { payload: '"x"' }))
  // As a primary does with what a worker says that it does not know.
  coordinator.setWaiting = () => {}
  coordinator.requestGrant = () => {}
  const { signal } = new AbortController()
  const came = sidecar.submit({ kind: 'POP_WAIT', pop: spec('orders'), timeoutMs: 20_000, signal })
  for (const own of ['setWaiting', 'requestGrant']) Reflect.deleteProperty(coordinator, own)
  t.equal(coordinator.waitingOf('orders'), 0)
  sidecar.registered()
  t.equal(coordinator.waitingOf('orders'), 1)
  t.equal((await came).leases[0]?.messages[0]?.payload, '"x"')
})
