// A group that makes no request retains its messages for ROUSE_IDLE_GROUP_SECONDS. After that time, it
// retains them only if no other group of the queue is in use.
import {
  ack,
  deadLetters,
  push,
  reapExpired,
  redrive,
  release,
  seek,
  setPaused,
} from '@rouse/storage'
import { type Test, test } from 'tap'
import { inconsistencies } from '../support/consistency.ts'
import { retainRound } from '../support/retain-round.ts'
import { item, message, openStorage, payloads, type Storage, start } from '../support/storage.ts'

const day = 86_400_000
const idleGroupMs = 14 * day

interface IdleGroup {
  readonly consumer_group: string
  readonly messages: string
  readonly oldest_at: Date
  readonly until: Date | null
  readonly let_go_at: Date | null
}

interface Watched extends Storage {
  /** Advances the clock by days. Each day, retention runs, and the group `alive`, if given, pops. */
  readonly days: (count: number, alive?: string) => Promise<void>
  readonly kept: () => Promise<unknown[]>
  readonly idle: () => Promise<IdleGroup[]>
}

/** Pushes five messages. Group `idle` completes one of them (`idleTakes`), group `alive` all. */
async function watched(t: Test, options: { idleTakes?: number } = {}): Promise<Watched> {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, pool, rows, send, take } = storage
  await freezeClock(start)
  await send('q', 'p', [1, 2, 3, 4, 5])
  const batch = options.idleTakes ?? 1
  if (batch > 0) await take('q', { group: 'idle', batch, autoAck: true })
  await take('q', { group: 'alive', batch: 9, autoAck: true })
  return {
    ...storage,
    async days(count, alive) {
      for (let n = 0; n < count; n += 1) {
        await advanceClock(day)
        if (alive !== undefined) await take('q', { group: alive, partition: 'nowhere' })
        await retainRound(pool, { idleGroupMs })
      }
    },
    async kept() {
      const found = await rows<{ payload: string }>(
        'select payload from rouse.messages order by seq',
      )
      return found.map(({ payload }) => JSON.parse(payload))
    },
    idle: () => rows<IdleGroup>('select * from rouse.idle_groups(10, $1)', [idleGroupMs]),
  }
}

test('an unused group retains messages up to the limit, and later continues with what is left', async (t) => {
  const { days, kept, pool, send, take } = await watched(t)
  await days(13, 'alive')
  t.same(await kept(), [2, 3, 4, 5])
  await days(2, 'alive')
  t.same(await kept(), [])
  await send('q', 'p', [6, 7])
  await take('q', { group: 'alive', batch: 9, autoAck: true })
  t.same(payloads(await take('q', { group: 'idle', batch: 9 })), [6, 7], 'it goes on where it can')
  t.same(await inconsistencies(pool), [])
})

test('an idle group is listed from its first day, with what it retains and until when', async (t) => {
  const { days, idle } = await watched(t)
  await days(1, 'alive')
  t.match(await idle(), [
    {
      consumer_group: 'idle',
      messages: '4',
      oldest_at: new Date(start),
      until: new Date(start + idleGroupMs),
      let_go_at: null,
    },
  ])
  await days(15, 'alive')
  t.same(await idle(), [], 'it no longer retains anything')
})

test('if all groups are idle, no message is removed that one of them has not completed', async (t) => {
  const { days, idle, kept } = await watched(t)
  await days(60)
  t.same(await kept(), [2, 3, 4, 5], 'what all have completed goes')
  t.match(await idle(), [{ consumer_group: 'idle', let_go_at: null }])
})

test('time in which no node ran does not count', async (t) => {
  const { advanceClock, days, idle, kept, pool, rows, take } = await watched(t)
  await advanceClock(100 * day)
  await take('q', { group: 'alive' })
  await retainRound(pool, { idleGroupMs })
  t.same(await kept(), [2, 3, 4, 5], 'the idle time was unknown')
  await days(5, 'alive')
  const step = async () => {
    await pool.query(
      `update rouse.chores set next_at = case when name = 'retention' then rouse.now() else 'infinity' end`,
    )
    await rows(
      `select * from rouse.retention_step('n', 60000, ${day}, ${day}, ${day}, ${day}, ${idleGroupMs}, 100, 1000)`,
    )
  }
  await step()
  await advanceClock(100 * day)
  await take('q', { group: 'alive' })
  await step()
  t.same(await kept(), [2, 3, 4, 5], 'nor while it was watched before')
  t.match(await idle(), [{ consumer_group: 'idle', let_go_at: null }])
  await days(9, 'alive')
  t.same(await kept(), [], 'a day, five and nine')
})

test('the redeliveries of a group are removed with its messages when it no longer retains them', async (t) => {
  const { days, kept, lease, pool, rows } = await watched(t, { idleTakes: 0 })
  const held = await lease('q', { group: 'idle', batch: 5 })
  await ack(
    pool,
    held.messages.map((_, at) =>
      item(held, at, at === 1 ? 'failed' : undefined, { delayMs: 99 * day }),
    ),
  )
  await days(13, 'alive')
  t.same(await kept(), [2, 3, 4, 5])
  await days(2, 'alive')
  t.same(await kept(), [])
  t.same(await rows('select from rouse.redeliveries'), [])
  t.same(await inconsistencies(pool), [])
})

test('a lease keeps its group in use and retains its messages', async (t) => {
  const { days, idle, kept, lease, pool } = await watched(t)
  const { leaseId } = await lease('q', { group: 'idle', leaseMs: 30 * day })
  await days(29, 'alive')
  t.same([await idle(), await kept()], [[], [2, 3, 4, 5]])
  await release(pool, [leaseId])
  await days(2, 'alive')
  t.match(await idle(), [{ consumer_group: 'idle', messages: '4', let_go_at: null }])
  t.same(await kept(), [2, 3, 4, 5])
})

test('an expired lease that was not reaped still retains its messages', async (t) => {
  const { days, kept, lease, pool, rows } = await watched(t)
  await lease('q', { group: 'idle', leaseMs: 1_000 })
  await days(20, 'alive')
  t.same(await kept(), [2, 3, 4, 5])
  await reapExpired(pool)
  await days(1, 'alive')
  t.same([await kept(), await rows('select from rouse.redeliveries')], [[], []])
})

test('a redriven dead letter marks its group as in use', async (t) => {
  const { advanceClock, days, kept, lease, pool, take } = await watched(t, { idleTakes: 0 })
  const held = await lease('q', { group: 'idle', batch: 5 })
  await ack(
    pool,
    held.messages.map((_, at) => item(held, at, at === 1 ? 'dlq' : undefined)),
  )
  const keepLetters = { deadMs: 99 * day, idleGroupMs }
  for (let n = 0; n < 16; n += 1) {
    await advanceClock(day)
    await take('q', { group: 'alive', partition: 'nowhere' })
    await retainRound(pool, keepLetters)
  }
  t.same(await kept(), [])
  t.match(await deadLetters(pool), { total: 1 })
  await redrive(pool, { queue: 'q' })
  await days(10, 'alive')
  t.same(await kept(), [2])
  t.same(payloads(await take('q', { group: 'idle' })), [2])
})

test('a redrive concurrent with a step of retention marks its group as in use in time', async (t) => {
  const { advanceClock, armBarrier, days, lease, pool, rows, send, take } = await watched(t)
  const held = await lease('q', { group: 'idle', batch: 4 })
  await ack(
    pool,
    held.messages.map((_, at) => item(held, at, at === 3 ? 'dlq' : undefined)),
  )
  await send('q', 'p', [6])
  await take('q', { group: 'alive', autoAck: true })
  for (let n = 0; n < 15; n += 1) {
    await advanceClock(day)
    await take('q', { group: 'alive', partition: 'nowhere' })
    await retainRound(pool, { deadMs: 99 * day, completedMs: 99 * day, idleGroupMs })
  }
  const redriving = await armBarrier('redrive-locked')
  const moved = redrive(pool, { queue: 'q' })
  await redriving.reached()
  const retained = retainRound(pool, { idleGroupMs })
  await redriving.release()
  await Promise.all([moved, retained])
  await retainRound(pool, { idleGroupMs })
  t.equal((await rows('select from rouse.redeliveries')).length, 1)
  t.same(await inconsistencies(pool), [])
  await days(1, 'alive')
  t.same(payloads(await take('q', { group: 'idle' })), [5])
})

test('a seek marks its group as in use', async (t) => {
  const { days, idle, kept, pool } = await watched(t)
  await days(12, 'alive')
  await seek(pool, { queue: 'q', group: 'idle', to: new Date(start) })
  await days(10, 'alive')
  t.same(await kept(), [2, 3, 4, 5])
  t.match(await idle(), [{ consumer_group: 'idle', let_go_at: null }])
})

test('a group of a paused queue is not idle', async (t) => {
  const { days, idle, kept, pool } = await watched(t)
  await setPaused(pool, 'q', true)
  await days(30)
  t.same(await idle(), [])
  await setPaused(pool, 'q', false)
  await days(2, 'alive')
  t.same(await kept(), [2, 3, 4, 5])
})

test('without a limit a group is listed and retains its messages forever', async (t) => {
  const { advanceClock, kept, pool, rows, take } = await watched(t)
  for (let n = 0; n < 3; n += 1) {
    await advanceClock(30 * day)
    await take('q', { group: 'alive' })
    await retainRound(pool)
  }
  t.same(await kept(), [2, 3, 4, 5])
  t.match(await rows('select * from rouse.idle_groups(10, null)'), [
    { consumer_group: 'idle', messages: '4', until: null, let_go_at: null },
  ])
})

test('each idle period of a group causes one warning, whichever node asks', async (t) => {
  const { days, rows, send, take } = await watched(t)
  const warn = () => rows('select * from rouse.warn_idle_groups(10)')
  await days(13, 'alive')
  t.same(await warn(), [])
  await days(1, 'alive')
  const warned = (await Promise.all([warn(), warn(), warn()])).flat()
  t.match(warned, [{ queue: 'q', consumer_group: 'idle', messages: '4' }])
  await days(3, 'alive')
  t.same(await warn(), [])
  await take('q', { group: 'idle' })
  await send('q', 'p', [6])
  await days(15, 'alive')
  t.match(await warn(), [{ consumer_group: 'idle' }], 'the next idle time')
})

test('a group created after the others stopped retaining messages gets what is left', async (t) => {
  const { days, pool, take } = await watched(t)
  await push(pool, [message('q', 'p', 6)])
  await days(16, 'alive')
  t.same(payloads(await take('q', { group: 'late', batch: 9 })), [6])
})
