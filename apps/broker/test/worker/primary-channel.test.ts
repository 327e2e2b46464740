// Workers keep their hints back while no node waits for messages.
import type { WakeHint } from '@rouse/protocol'
import { test } from 'tap'
import type { WorkerMessage } from '../../src/ipc.ts'
import { HintGate } from '../../src/worker/primary-channel.ts'

function startGate() {
  const clock = { now: 0 }
  const posted: WorkerMessage[] = []
  const gate = new HintGate({ post: (message) => posted.push(message) }, () => clock.now)
  return { clock, posted, gate }
}

function hintOf(queue: string): WakeHint {
  return { queue, partition: 'p', group: null, namespace: 'n', task: null, count: 1 }
}

test('a new worker sends its hints until it learns that no node waits', async (t) => {
  const { gate, posted } = startGate()
  gate.send('available', [hintOf('a')])
  gate.send('free', [])
  t.same(posted, [{ type: 'available', woken: [hintOf('a')] }])
  gate.setWanted(false)
  gate.send('available', [hintOf('b')])
  gate.send('free', [{ ...hintOf('b'), group: 'g' }])
  t.equal(posted.length, 1)
})

test('a waiter gets the hints of the moment before, once, for all partitions and groups', async (t) => {
  const { gate, posted } = startGate()
  gate.setWanted(false)
  gate.send('available', [hintOf('a'), hintOf('b')])
  gate.send('free', [{ ...hintOf('a'), group: 'g' }])
  gate.setWanted(true)
  const woken = ['b', 'a'].map((queue) => ({ queue, namespace: 'n', task: null }))
  t.same(posted, [{ type: 'available', woken }])
  gate.setWanted(false)
  gate.setWanted(true)
  t.equal(posted.length, 1)
})

test('hints that a fallback poll has made unnecessary are not sent', async (t) => {
  const { gate, posted, clock } = startGate()
  gate.setWanted(false)
  gate.send('available', [hintOf('old')])
  clock.now = 10_001
  gate.send('available', [hintOf('new')])
  gate.setWanted(true)
  t.match(posted, [{ woken: [{ queue: 'new' }] }])
  t.equal(posted.length, 1)
})

test('too many queues to keep count as lost hints', async (t) => {
  const { gate, posted, clock } = startGate()
  gate.setWanted(false)
  for (let i = 0; i < 5_000; i += 1) gate.send('available', [hintOf(`q${i}`)])
  gate.setWanted(true)
  t.same(posted, [{ type: 'hintsLost' }])
  gate.setWanted(false)
  for (let i = 0; i < 5_000; i += 1) gate.send('available', [hintOf(`q${i}`)])
  clock.now = 10_001
  gate.send('available', [hintOf('last')])
  gate.setWanted(true)
  t.match(posted.slice(1), [{ type: 'available', woken: [{ queue: 'last' }] }])
})
