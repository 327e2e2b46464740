// Lists of messages: one snapshot per page, every state and filter, in pages of any size.
import {
  ack,
  cancelMessage,
  listMessages,
  type MessageFilter,
  messageById,
  type NewMessage,
  promoteDue,
  purge,
  push,
} from '@rouse/storage'
import { type Test, test } from 'tap'
import { newId } from '../support/new-id.ts'
import { finish, item, message, openStorage, type Storage, start } from '../support/storage.ts'

type Filter = Partial<MessageFilter>

async function opened(t: Test) {
  const storage = await openStorage(t)
  await storage.freezeClock(start)
  const add = async (partition: string, value: unknown, more: Partial<NewMessage> = {}) =>
    (await push(storage.pool, [message('q', partition, value, { id: newId(), ...more })])).items[0]
      ?.messageId as string
  /** Every message that matches, read in pages. */
  const list = async (filter: Filter = {}, limit = 100) => {
    const found: string[] = []
    const whole = { queue: 'q', partition: undefined, group: 'g', status: undefined, ...filter }
    let after: readonly string[] | undefined
    for (let pages = 0; pages === 0 || after !== undefined; pages += 1) {
      if (pages > 100) throw new Error('the list does not end')
      const page = await listMessages(storage.pool, { ...whole, limit }, after)
      t.ok(page.messages.length <= limit)
      found.push(...page.messages.map(({ payload, status }) => `${payload} ${status}`))
      after = page.next
    }
    return found
  }
  return { ...storage, add, list }
}

test('a message that becomes due while a page is read is in the page once', async (t) => {
  const { add, armBarrier, freezeClock, list, pool } = await opened(t)
  await add('p', 1)
  await add('p', 2, { delayMs: 1_000 })
  const between = await armBarrier('list-place-read')
  const listing = list()
  await between.reached()
  await freezeClock(start + 2_000)
  t.equal((await promoteDue(pool)).length, 1)
  await between.release()
  t.same(await listing, ['1 pending', '2 scheduled'])
  t.same(await list(), ['1 pending', '2 pending'])
})

/** Partitions a and b with two messages of every state, numbered by their order. */
async function everyState({ add, pool, set, take }: Storage & Awaited<ReturnType<typeof opened>>) {
  await set('q', { ordering: 'none', onFailure: 'skip', retryBackoffMs: [60_000] })
  for (const partition of ['a', 'b']) {
    for (const n of [1, 2, 3, 4, 5, 6, 7, 8]) await add(partition, `${partition}${n}`)
    const end = async (status: 'completed' | 'failed' | 'dlq', code?: string) => {
      const popped = await take('q', { partition, batch: 1 })
      const [lease] = popped.leases
      if (lease === undefined) throw new Error('nothing came')
      await ack(pool, [item(lease, 0, status, code === undefined ? {} : { errorCode: code })])
    }
    await end('completed')
    await end('failed', 'E1')
    await end('dlq', 'E2')
    await end('failed', 'E3')
    await end('completed')
    await take('q', { partition })
    await add(partition, `${partition}9`, { delayMs: 30_000 })
    await cancelMessage(pool, await add(partition, `${partition}10`, { delayMs: 40_000 }))
    await cancelMessage(pool, await add(partition, `${partition}11`))
  }
}

const inA = [
  'a1 completed',
  'a2 retrying',
  'a3 dead',
  'a4 retrying',
  'a5 completed',
  'a6 leased',
  'a7 pending',
  'a8 pending',
  'a11 cancelled',
  'a9 scheduled',
  'a10 cancelled',
]

test('every state and filter lists the same in pages of any size', async (t) => {
  const storage = await opened(t)
  await everyState(storage)
  const inBoth = [...inA, ...inA.map((one) => one.replace('a', 'b'))]
  const statuses = [undefined, 'pending', 'leased', 'retrying', 'dead', 'completed', 'scheduled']
  for (const status of [...statuses, 'cancelled']) {
    for (const partition of [undefined, 'a', 'b', 'none']) {
      const expected = inBoth
        .map((one) => JSON.stringify(one))
        .map((one) => one.replace(/"(\S+) (\S+)"/, '"$1" $2'))
        .filter((one) => status === undefined || one.endsWith(` ${status}`))
        .filter((one) => partition === undefined || one.startsWith(`"${partition}`))
      for (const limit of [1, 2, 3, 100]) {
        const found = await storage.list({ status, partition }, limit)
        t.same(found.sort(), expected.sort(), `${status} in ${partition}, ${limit} a page`)
      }
    }
  }
  t.same(await storage.list({ status: 'retrying', errorCode: 'E3' }, 1), [
    '"a4" retrying',
    '"b4" retrying',
  ])
  t.same(await storage.list({ status: 'dead', errorCode: 'E1' }), [])
  t.same(await storage.list({ status: 'dead', errorCode: 'E2', partition: 'b' }), ['"b3" dead'])
})

test('a long run of messages in another state is passed over in several pages', async (t) => {
  const { list, pool, send, set, take } = await opened(t)
  await set('q', { ordering: 'none' })
  const many = Array.from({ length: 4_500 }, (_, i) => i)
  await send('q', 'p', many)
  const leases = []
  for (let i = 0; i < 5; i += 1) leases.push(...(await take('q', { batch: 1_000 })).leases)
  await finish(pool, leases.at(-1) as (typeof leases)[number])
  const filter = { queue: 'q', partition: undefined, group: 'g', status: 'completed', limit: 3 }
  const first = await listMessages(pool, filter, undefined)
  t.same(first, { messages: [], next: ['log', 'p', '4000'] })
  t.equal((await list({ status: 'completed' }, 100)).length, 500)
})

test('purged messages are not listed, although they are still stored', async (t) => {
  const { add, list, pool, rows, take } = await opened(t)
  await add('p', 1)
  await take('q')
  await add('p', 2)
  await add('p', 3, { delayMs: 1_000 })
  await purge(pool, 'q')
  await add('p', 4)
  t.equal((await rows('select from rouse.messages')).length, 3)
  t.same(
    (await list({})).filter((one) => one.endsWith('pending')),
    ['4 pending'],
  )
  t.same(await list({ status: 'pending', group: 'unknown' }), ['4 pending'])
})

test('dead letters are listed after the log has lost the message', async (t) => {
  const { add, list, lease, pool, rows } = await opened(t)
  await add('p', 1)
  await add('p', 2)
  await ack(pool, [item(await lease('q'), 0, 'dlq')])
  await rows('update rouse.partitions set tail = 2')
  await rows('delete from rouse.messages where seq = 1')
  t.same(await list({ status: 'dead' }), ['1 dead'])
  t.same(await list(), ['2 pending'])
})

test('a list goes on after the partition where it stopped was removed', async (t) => {
  const { add, pool, rows } = await opened(t)
  for (const partition of ['a', 'b', 'c']) await add(partition, partition)
  const filter = { queue: 'q', partition: undefined, group: 'g', status: undefined, limit: 2 }
  const first = await listMessages(pool, filter, undefined)
  t.match(first.messages, [{ partition: 'a' }, { partition: 'b' }])
  await rows(
    `delete from rouse.messages where partition_id in (select id from rouse.partitions where name = 'b')`,
  )
  await rows(`delete from rouse.partitions where name = 'b'`)
  const second = await listMessages(pool, filter, first.next)
  t.match(second.messages, [{ partition: 'c' }])
})

for (const option of ['ttl', 'maxWaitTimeSeconds']) {
  test(`a message that is too old by the ${option} of its queue is not ready, in lists and by its id`, async (t) => {
    const { add, advanceClock, list, pool, set, take } = await opened(t)
    await set('q', { [option]: 60 })
    const id = await add('p', 1)
    await advanceClock(60_000)
    t.same(await list({ status: 'pending' }), ['1 pending'])
    await advanceClock(1)
    await add('p', 2)
    for (const group of ['g', 'g']) {
      t.same(await list({ group }), ['1 completed', '2 pending'])
      t.same(await list({ group, status: 'pending' }), ['2 pending'])
      await take('q', { group, partition: 'other' })
    }
    t.match((await messageById(pool, id))?.groups, [{ status: 'completed' }])
    t.match(await cancelMessage(pool, id), { outcome: 'finished' })
  })
}
