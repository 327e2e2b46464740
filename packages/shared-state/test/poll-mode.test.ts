import { test } from 'tap'
import {
  afterCheck,
  afterFault,
  afterFaultCleared,
  leavesAt,
  type PollMode,
  startHealthy,
  whileNobodyWaits,
} from '../src/poll-mode.ts'
import { sharedStateDefaults as settings } from '../src/settings.ts'

const minute = settings.aggressivePollDurationMs

function quiet(mode: PollMode, times: number, now: number): PollMode {
  return Array.from({ length: times }).reduce<PollMode>(
    (one) => afterCheck(one, 'nothing', now, settings),
    mode,
  )
}

test('every fault makes a node aggressive, and it remembers why and since when', async (t) => {
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

test('it leaves after the time and the quiet checks, not before either', async (t) => {
  const mode = afterFault(startHealthy(0), 'fetch_error', 0)
  t.equal(quiet(mode, 100, minute - 1).mode, 'aggressive')
  t.equal(quiet(mode, 4, minute).mode, 'aggressive')
  t.match(quiet(mode, 5, minute), { mode: 'healthy', since: minute, why: [] })
})

test('work that nobody announced, and any fault, start the count again', async (t) => {
  const mode = quiet(afterFault(startHealthy(0), 'fetch_error', 0), 4, minute)
  const found = afterCheck(mode, 'unannounced', minute, settings)
  t.equal(quiet(found, 4, minute).mode, 'aggressive')
  t.equal(quiet(found, 5, minute).mode, 'healthy')
  const again = afterFault(mode, 'grant_untaken', minute)
  t.equal(quiet(again, 9, 2 * minute - 1).mode, 'aggressive')
  t.equal(quiet(again, 5, 2 * minute).mode, 'healthy')
})

test('a fault that stands keeps it aggressive, and for a while after', async (t) => {
  const mode = afterFault(startHealthy(0), 'listener_lost', 0)
  t.equal(leavesAt(mode, settings), Number.POSITIVE_INFINITY)
  t.equal(quiet(mode, 50, 100 * minute).mode, 'aggressive')
  const cleared = afterFaultCleared(mode, 'listener_lost', 100 * minute)
  t.equal(quiet(cleared, 50, 100 * minute).mode, 'aggressive')
  t.equal(quiet(cleared, 5, 101 * minute).mode, 'healthy')
})

test('clearing what does not stand changes nothing', async (t) => {
  const mode = afterFault(startHealthy(0), 'listener_lost', 0)
  t.equal(afterFaultCleared(mode, 'peer_silent', 5), mode)
})

test('checks of a healthy node change nothing, whatever they find', async (t) => {
  const mode = startHealthy(0)
  t.equal(afterCheck(mode, 'unannounced', 5, settings), mode)
})

test('where nobody waits, the time alone decides', async (t) => {
  const mode = afterFault(startHealthy(0), 'fetch_error', 0)
  t.equal(whileNobodyWaits(mode, minute - 1, settings).mode, 'aggressive')
  t.equal(whileNobodyWaits(mode, minute, settings).mode, 'healthy')
})
