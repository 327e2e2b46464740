import type { WakeHint } from '@rouse/protocol'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { MovedQueues } from '../../src/primary/moved-queues.ts'
import { pass } from '../support/node-state.ts'

const roundMs = 2
/** Time for all rounds: more than sixteen. */
const allRoundsMs = 100

function startMoved(t: Test, onTold: () => void = () => {}) {
  const told: WakeHint[] = []
  let tooMany = 0
  const moved = new MovedQueues({
    again: (hint) => {
      told.push(hint)
      onTold()
    },
    tooMany: () => {
      tooMany += 1
    },
    roundMs,
  })
  t.teardown(() => moved.stop())
  const toldOf = (namespace: string) => told.filter((hint) => hint.namespace === namespace).length
  return { moved, toldOf, tooMany: () => tooMany }
}

test('a hint for a moved queue is repeated five times', async (t) => {
  const { moved, toldOf } = startMoved(t)
  moved.add({ queue: 'q', namespace: 'new' })
  t.equal(toldOf('new'), 0, 'the node that moved it has already polled')
  await eventually(() => toldOf('new') === 5)
  await pass(allRoundsMs)
  t.equal(toldOf('new'), 5)
  moved.add({ queue: 'q', namespace: 'newer' })
  await eventually(() => toldOf('newer') === 5)
})

test('the hints for a queue that moves again start over at its new namespace', async (t) => {
  const { moved, toldOf } = startMoved(t, () => {
    if (toldOf('first') === 2 && toldOf('second') === 0) {
      moved.add({ queue: 'q', namespace: 'second' })
    }
  })
  moved.add({ queue: 'q', namespace: 'first' })
  moved.add({ queue: 'other', namespace: 'elsewhere' })
  await eventually(() => toldOf('second') === 5)
  t.equal(toldOf('first'), 2)
  t.equal(toldOf('elsewhere'), 5)
})

test('exceeding the maximum of moved queues is reported, and the tracked queues are kept', async (t) => {
  const { moved, toldOf, tooMany } = startMoved(t)
  for (let i = 0; i < 1_000; i += 1) moved.add({ queue: `q${i}`, namespace: 'all' })
  t.equal(tooMany(), 0)
  moved.add({ queue: 'one more', namespace: 'late' })
  moved.add({ queue: 'q0', namespace: 'again' })
  t.equal(tooMany(), 1)
  await eventually(() => toldOf('all') === 5 * 999 && toldOf('again') === 5)
  t.equal(toldOf('late'), 0)
})

test('no hint is sent after stop', async (t) => {
  const { moved, toldOf } = startMoved(t)
  moved.add({ queue: 'q', namespace: 'n' })
  moved.stop()
  await pass(allRoundsMs)
  t.equal(toldOf('n'), 0)
})
