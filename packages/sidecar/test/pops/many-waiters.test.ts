// A worker with more waiters than one SQL call can serve.

import { setImmediate as turn } from 'node:timers/promises'
import type { Executor } from '@rouse/storage'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { SidecarDbPool } from '../../src/index.ts'
import { spec } from '../support/start-sidecar.ts'
import { TestCoordinator } from '../support/test-coordinator.ts'

test('a worker with very many waiters releases the grant so that other workers get a turn', async (t) => {
  const coordinator = new TestCoordinator()
  let pops = 0
  let released = 0
  /** Simulates a queue that always has one more message. */
  const query: Executor['query'] = async () => {
    await turn()
    pops += 1
    const message = [
      null,
      1,
      `lease-${pops}`,
      'q',
      '1',
      'p',
      1,
      0,
      pops,
      'id',
      0,
      null,
      null,
      '1',
      null,
    ]
    const last = ['messages', ...Array(9).fill(null), 0, null, null, null, null]
    return { rows: [message, last] }
  }
  const sidecar = new SidecarDbPool({
    executor: { query, use: (work) => work({ query }) },
    coordinator,
    worker: '1',
    random: () => 0.5,
  })
  coordinator.requestGrant = () => {}
  coordinator.releaseGroup = () => {
    released += 1
  }
  const gone = new AbortController()
  /** Pops again after each response, as consumers do. */
  const popAgain = async (): Promise<void> => {
    while (!gone.signal.aborted && pops <= 3_000) {
      const pop = spec('q', { autoAck: true })
      await sidecar.submit({ kind: 'POP_WAIT', pop, timeoutMs: 60_000, signal: gone.signal })
    }
  }
  const clients = Array.from({ length: 150 }, popAgain)
  sidecar.onGrant({ description: { source: { queue: 'q' }, group: 'g' }, grantId: 1 })
  await eventually(() => released > 0 || pops > 2_000)
  t.equal(released, 1, `after ${pops} pops`)
  gone.abort()
  await Promise.all(clients)
  await sidecar.stop()
})
