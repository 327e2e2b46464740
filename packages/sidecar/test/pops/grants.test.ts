// Grants that arrive at the same time as other events of a worker.
import type { GrantOutcome, WaitGroup } from '@rouse/protocol'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import type { Grant } from '../../src/index.ts'
import { item, pushOne, spec, startSidecar } from '../support/start-sidecar.ts'

/** Starts a sidecar that gets its grants from the test. The queues already have lanes. */
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
    /** Grants a pop of the queue; returns the id of the grant. */
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

test('a grant that arrives during an older pop of the same group is not released as unused', async (t) => {
  const worker = await startByHand(t, ['orders'])
  const { database, sidecar, outcomes } = worker
  const waiting = worker.waits('orders')
  const barrier = await database.armBarrier('pop-begun')
  const older = worker.grant('orders')
  await barrier.reached()
  const newer = worker.grant('orders')
  t.equal(outcomes.get(newer), 'contended', 'the older pop still includes the waiter')
  await barrier.release()
  await eventually(() => outcomes.get(older))
  t.equal(outcomes.get(older), 'empty')
  await pushOne(sidecar, item('orders', { payload: '"x"' }))
  worker.grant('orders')
  t.equal((await waiting).leases[0]?.messages[0]?.payload, '"x"')
})

test('a grant that waits for a slot serves waiters that arrive meanwhile', async (t) => {
  const busy = ['a', 'b', 'c', 'd']
  const worker = await startByHand(t, [...busy, 'orders'])
  const { database, sidecar, outcomes, coordinator } = worker
  const barrier = await database.armBarrier('pop-begun')
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
  const waiting = worker.waits('orders')
  await pushOne(sidecar, item('orders', { payload: '"x"' }))
  await barrier.release()
  t.equal((await waiting).leases[0]?.messages[0]?.payload, '"x"')
  await eventually(() => outcomes.get(granted))
  t.equal(outcomes.get(granted), 'messages')
})

test('a waiter that arrives before its worker is registered is reported afterwards and served', async (t) => {
  const { sidecar, coordinator } = await startSidecar(t)
  await pushOne(sidecar, item('orders', { payload: '"x"' }))
  // A primary ignores messages from a worker that is not registered.
  coordinator.setWaiting = () => {}
  coordinator.requestGrant = () => {}
  const { signal } = new AbortController()
  const waiting = sidecar.submit({
    kind: 'POP_WAIT',
    pop: spec('orders'),
    timeoutMs: 20_000,
    signal,
  })
  for (const own of ['setWaiting', 'requestGrant']) Reflect.deleteProperty(coordinator, own)
  t.equal(coordinator.waitingOf('orders'), 0)
  sidecar.registered()
  t.equal(coordinator.waitingOf('orders'), 1)
  t.equal((await waiting).leases[0]?.messages[0]?.payload, '"x"')
})
