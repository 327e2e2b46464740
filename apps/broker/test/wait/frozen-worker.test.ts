// A worker freezes in the middle of its work, for example because the machine swaps or it is being debugged.
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { startNode } from '../support/cluster.ts'
import { apiOf, send } from '../support/http.ts'
import { untilWaiting } from '../support/node-state.ts'
import { childrenOf } from '../support/process-tree.ts'

/** Enough that some wait at each of the two workers. */
const waiters = 16
/** The primary skips a worker after 2.5 s of silence. Otherwise the other workers would wait for 30 s. */
const answeredMsMax = 15_000

test('a worker that freezes during a pop does not block the pops of the other workers', {
  timeout: 120_000,
}, async (t) => {
  const database = await testDatabase(t)
  const node = await startNode(t, 0, { database, env: { ROUSE_WORKERS: '2' } })
  const api = apiOf(node.url)
  await api.push({ queue: 'q', payload: 0 })
  await api.pop('q', '?autoAck=true')
  let answered = 0
  for (let i = 0; i < waiters; i += 1) {
    const count = ({ status }: { status: number }) => {
      if (status === 200) answered += 1
    }
    api.pop('q', '?wait=true&timeout=60000&autoAck=true').then(count, () => {})
  }
  await untilWaiting(node, 'q', waiters)
  const workers = childrenOf(node.child.pid ?? 0)
  const barrier = await database.armBarrier('pop-begun')
  // Cause a hint without a message: the worker with the grant pops, and stops at the barrier.
  await send('POST', `${node.url}/api/v1/configure`, { queue: 'q', options: { ttl: 0 } })
  const { pids } = await barrier.reached()
  const { rows } = await database.pool.query<{ name: string }>(
    'select application_name as name from pg_stat_activity where pid = any ($1)',
    [pids],
  )
  const frozen = workers[Number(/worker (\d+)/.exec(rows[0]?.name ?? '')?.[1]) - 1] as number
  process.kill(frozen, 'SIGSTOP')
  t.teardown(() => process.kill(frozen, 'SIGCONT'))
  await barrier.release()

  const begunAt = performance.now()
  // Push from SQL, because an HTTP connection might go to the frozen worker.
  await database.pool.query(`select rouse.enqueue('q', '1')`)
  await eventually(() => answered === 1, { timeoutMs: 60_000 })
  const tookMs = performance.now() - begunAt
  t.ok(tookMs < answeredMsMax, `answered after ${Math.round(tookMs)} ms`)
})
