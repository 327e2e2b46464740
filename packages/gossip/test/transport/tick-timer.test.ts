import { once } from 'node:events'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { TickTimer } from '../../src/transport/tick-timer.ts'

/** Starts a timer for a core that wants `ticksWanted` ticks, one right after the other. */
function startTimer(t: Test, ticksWanted: number, onTick: (tick: number) => void) {
  const ticked = { count: 0 }
  const timer = new TickTimer(
    {
      tick: () => {
        ticked.count += 1
        onTick(ticked.count)
      },
      nextTickAt: () => (ticked.count < ticksWanted ? 0 : Number.POSITIVE_INFINITY),
    },
    () => 1,
  )
  t.teardown(() => timer.stop())
  timer.start()
  return { timer, ticked }
}

test('a tick that throws is reported, and the next one still runs', async (t) => {
  const failed = new Error('a port that throws')
  const surfaced = once(process, 'uncaughtException')
  const { ticked } = startTimer(t, 2, (tick) => {
    if (tick === 1) throw failed
  })
  t.same(await surfaced, [failed, 'uncaughtException'])
  await eventually(() => ticked.count === 2)
})

test('the socket is read before every tick', async (t) => {
  const order: string[] = []
  startTimer(t, 1, () => order.push('tick'))
  // A tick runs after the events of the poll phase (sockets) and after callbacks that are already due.
  process.nextTick(() => order.push('this turn'))
  setImmediate(() => order.push('after'))
  await eventually(() => order.includes('after'))
  t.same(order, ['this turn', 'tick', 'after'])
})
