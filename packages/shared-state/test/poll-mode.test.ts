import { test } from 'tap'
import {
  afterFault,
  afterFaultCleared,
  afterPoll,
  leavesAt,
  type PollMode,
  startHealthy,
  withoutWaiters,
} from '../src/poll-mode.ts'
import { sharedStateDefaults as settings } from '../src/settings.ts'

const minute = settings.aggressivePollDurationMs

function quiet(mode: PollMode, times: number, now: number): PollMode {
  return Array.from({ length: times }).reduce<PollMode>(
    (one) => afterPoll(one, 'nothing', now, settings),
    mode,
  )
}

test('every fault makes a node aggressive, with its reason and start time', async (t) => {
  const standing: PollMode['why'] = ['listener_lost', 'peer_silent']
  const momentary: PollMode['why'] = [
    'fetch_error',
    'grant_untaken',
    'sidecar_lost',
    'outcome_unknown',
  ]
  for (const fault of [...standing, ...momentary]) {
    t.match(afterFault(startHealthy(0), fault, 5), { mode: 'aggressive', since: 5, why: [fault] })
  }
  const twice = afterFault(afterFault(startHealthy(0), 'fetch_error', 5), 'listener_lost', 9)
  t.match(twice, { since: 5, why: ['fetch_error', 'listener_lost'] })
  t.equal(afterFault(twice, 'fetch_error', 10).why.length, 2)
})

test('aggressive mode ends only after both the duration and the quiet polls', async (t) => {
  const mode = afterFault(startHealthy(0), 'fetch_error', 0)
  t.equal(quiet(mode, 100, minute - 1).mode, 'aggressive')
  t.equal(quiet(mode, 4, minute).mode, 'aggressive')
  t.match(quiet(mode, 5, minute), { mode: 'healthy', since: minute, why: [] })
})

test('unannounced work or a fault restarts the count of quiet polls', async (t) => {
  const mode = quiet(afterFault(startHealthy(0), 'fetch_error', 0), 4, minute)
  const found = afterPoll(mode, 'unannounced', minute, settings)
  t.equal(quiet(found, 4, minute).mode, 'aggressive')
  t.equal(quiet(found, 5, minute).mode, 'healthy')
  const again = afterFault(mode, 'grant_untaken', minute)
  t.equal(quiet(again, 9, 2 * minute - 1).mode, 'aggressive')
  t.equal(quiet(again, 5, 2 * minute).mode, 'healthy')
})

test('a lasting fault keeps the node aggressive until the duration after it is cleared', async (t) => {
  const mode = afterFault(startHealthy(0), 'listener_lost', 0)
  t.equal(leavesAt(mode, settings), Number.POSITIVE_INFINITY)
  t.equal(quiet(mode, 50, 100 * minute).mode, 'aggressive')
  const cleared = afterFaultCleared(mode, 'listener_lost', 100 * minute)
  t.equal(quiet(cleared, 50, 100 * minute).mode, 'aggressive')
  t.equal(quiet(cleared, 5, 101 * minute).mode, 'healthy')
})

test('clearing a fault that was not reported changes nothing', async (t) => {
  const mode = afterFault(startHealthy(0), 'listener_lost', 0)
  t.equal(afterFaultCleared(mode, 'peer_silent', 5), mode)
})

test('polls of a healthy node never change its mode', async (t) => {
  const mode = startHealthy(0)
  t.equal(afterPoll(mode, 'unannounced', 5, settings), mode)
})

test('without waiters the duration alone decides', async (t) => {
  const mode = afterFault(startHealthy(0), 'fetch_error', 0)
  t.equal(withoutWaiters(mode, minute - 1, settings).mode, 'aggressive')
  t.equal(withoutWaiters(mode, minute, settings).mode, 'healthy')
})
