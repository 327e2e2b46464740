// What the primary sends to its workers, timers and peers when queue options changed or may have changed. The
// primary also tracks every waiter.
import type { WakeHint } from '@rouse/protocol'
import type { SharedStateStats } from '@rouse/shared-state'
import { eventually } from '@rouse/testkit'
import type pg from 'pg'
import { type Test, test } from 'tap'
import { systemClock } from '../../src/clock.ts'
import { loadConfig } from '../../src/config/config.ts'
import type { PrimaryMessage } from '../../src/ipc.ts'
import { createLogger } from '../../src/log.ts'
import { NodeEvents } from '../../src/observe/events/node-events.ts'
import { NodeActivity } from '../../src/observe/node-activity.ts'
import { SharedStateHost } from '../../src/primary/shared-state-host.ts'

const hint: WakeHint = {
  queue: 'q',
  partition: null,
  group: null,
  namespace: 'n',
  task: null,
  count: 0,
}

function startHost(t: Test, settings: Readonly<Record<string, string>> = {}) {
  const toWorkers: PrimaryMessage[] = []
  const toPeers: unknown[] = []
  let looks = 0
  let shared: SharedStateStats | undefined
  const env = { ROUSE_DATABASE_URL: 'postgres://localhost/x', ...settings }
  const host = new SharedStateHost({
    config: loadConfig({ env, args: [] }).config,
    clock: systemClock,
    log: createLogger({ level: 'silent', node: 'a', process: 'test' }),
    // The pool is not used: there are no waiters to poll for.
    pool: {} as pg.Pool,
    workers: { post: () => {}, postAll: (message) => toWorkers.push(message) },
    keys: { received: () => {} },
    issuer: { received: () => {} },
    activity: new NodeActivity({ nowMs: () => 0, wallMs: () => 0, namedQueuesMax: 10 }),
    events: new NodeEvents({ node: 'a', wallMs: () => 0, nowMs: () => 0, post: () => {} }),
    stats: (one) => {
      shared = one
      return {}
    },
  })
  host.connect({
    link: {
      listening: () => {},
      broadcast: (one, kind) => toPeers.push({ kind, hint: one }),
      tellConfigured: (one, version) => toPeers.push({ kind: 'configured', hint: one, version }),
      tellScheduled: () => {},
      tellKeysChanged: () => {},
      broadcastEverything: () => toPeers.push({ kind: 'everything' }),
      interestChanged: () => {},
      peersWait: () => true,
    },
    timers: {
      expect: () => true,
      expectDue: () => undefined,
      pollDueTimes: () => {
        looks += 1
      },
      popFoundNothing: () => {},
      databaseAheadMs: () => undefined,
    },
  })
  t.teardown(() => host.stop())
  host.handle(1, [{ type: 'ready', url: '' }])
  const stats = () => {
    host.handle(1, [{ type: 'askStats', of: 'node', id: 1 }])
    return shared
  }
  return { host, toWorkers, toPeers, looks: () => looks, stats }
}

test('options changed by a worker make all workers refresh, timers poll, and notify peers', async (t) => {
  const { host, toWorkers, toPeers, looks } = startHost(t)
  host.handle(1, [{ type: 'configured', hint, version: 7, hasMoved: false }])
  t.same(toWorkers, [{ type: 'configured' }])
  t.equal(looks(), 1)
  t.same(toPeers, [{ kind: 'configured', hint, version: 7 }])
})

test('peers get a hint for a moved queue at its new namespace', async (t) => {
  const { host, toPeers } = startHost(t)
  host.peerMet()
  host.handle(1, [{ type: 'configured', hint, version: 7, hasMoved: true }])
  t.same(toPeers, [{ kind: 'configured', hint, version: 7 }])
  await eventually(() => toPeers.length > 1)
  t.same(toPeers[1], { kind: 'free', hint })
})

test('options changed by a peer make all workers refresh and timers poll, and notify no peer', async (t) => {
  const { host, toWorkers, toPeers, looks } = startHost(t)
  host.heardConfigured(hint)
  t.same(toWorkers, [{ type: 'configured' }])
  t.equal(looks(), 1)
  t.same(toPeers, [])
})

test('hints that were or may have been lost make all workers refresh', async (t) => {
  const causes: readonly [string, (host: SharedStateHost) => void][] = [
    ['hints of a peer were lost', (host) => host.heardEverything()],
    ['a worker died', (host) => host.workerGone(1, 'died')],
    ['a write has an unknown outcome', (host) => host.handle(1, [{ type: 'outcomeUnknown' }])],
    ['a job has an unknown outcome', (host) => host.outcomeUnknown()],
    ['the channel of a worker was full', (host) => host.handle(1, [{ type: 'hintsLost' }])],
  ]
  for (const [what, cause] of causes) {
    const { host, toWorkers, looks } = startHost(t)
    cause(host)
    t.same(toWorkers, [{ type: 'configured' }], what)
    t.equal(looks(), 1, what)
  }
})

test('plain wake hints refresh nothing', async (t) => {
  const { host, toWorkers, looks } = startHost(t)
  const woken = [{ queue: 'q', partition: 'p', group: null, namespace: null, task: null, count: 1 }]
  host.handle(1, [
    { type: 'available', woken },
    { type: 'free', woken },
  ])
  host.heard(hint)
  t.same(toWorkers, [])
  t.equal(looks(), 0)
})

test('hints go to peers from the first contact with another node', async (t) => {
  const { host, toPeers } = startHost(t)
  host.handle(1, [{ type: 'available', woken: [hint] }])
  t.same(toPeers, [], 'no node would get or miss it')
  host.peerMet()
  host.handle(1, [{ type: 'available', woken: [hint] }])
  host.handle(1, [{ type: 'free', woken: [hint] }])
  t.same(toPeers, [
    { kind: 'available', hint },
    { kind: 'free', hint },
  ])
})

test('every waiter that a worker accepts is tracked, even if each has its own wait group', async (t) => {
  const count = 100_001
  const { host, stats } = startHost(t, { ROUSE_WORKERS: '1', ROUSE_WAITERS_MAX: `${count}` })
  for (let index = 0; index < count; index += 1) {
    const group = { source: { queue: `q${index}` }, group: 'g' }
    host.handle(1, [{ type: 'waiting', group, count: 1 }])
  }
  t.match(stats(), {
    group_backoff: { groups_tracked: count },
    counters: { refusedGroups: 0 },
  })
})
