import { test } from 'tap'
import { RetryIn } from '../../src/index.ts'
import { testRouse } from '../../src/testing/index.ts'

interface Queues {
  emails: { to: string }
  receipts: { of: string }
}

const start = new Date('2030-01-01T00:00:00Z')

test('a test sees what was pushed, with its options', async (t) => {
  const rouse = testRouse<Queues>({ now: start })
  await rouse.queue('emails').push({ to: 'ann' }, { delay: '10m', dedupeKey: 'k' })
  await rouse.queue('emails').push({ to: 'bob' })
  await rouse.queue('emails').push({ to: 'again' }, { dedupeKey: 'k' })
  t.match(rouse.pushed('emails'), [
    { data: { to: 'ann' }, delayMs: 600_000, dedupeKey: 'k' },
    { data: { to: 'bob' }, delayMs: undefined, dedupeKey: undefined },
  ])
  t.same(rouse.pushed('receipts'), [])
  await rouse.close()
})

test('advance runs handlers at the times at which their messages are due', async (t) => {
  const rouse = testRouse<Queues>({ now: start })
  const seen: string[] = []
  rouse.queue('emails').work(async ({ data }) => {
    seen.push(`${data.to} at ${rouse.now.toISOString().slice(11, 19)}`)
  })
  await rouse.queue('emails').push({ to: 'late' }, { delay: '10m' })
  await rouse.queue('emails').push({ to: 'early' }, { delay: '5m' })
  await rouse.advance('4m')
  t.same(seen, [])
  await rouse.advance('1h')
  t.same(seen, ['early at 00:05:00', 'late at 00:10:00'])
  t.equal(rouse.now.toISOString(), '2030-01-01T01:04:00.000Z')
  await rouse.close()
})

test('drain runs handlers and their retries, and leaves delayed messages alone', async (t) => {
  const rouse = testRouse<Queues>({ now: start })
  await rouse.queue('emails').configure({ retry: { limit: 5, backoff: ['1m', '1h'] } })
  const attempts: string[] = []
  rouse.queue('emails').work({ onError: () => {} }, async (message, context) => {
    attempts.push(`${message.data.to} ${message.attempt}`)
    if (message.attempt === 1) throw new Error('first')
    if (message.attempt === 2) throw new RetryIn('3h')
    await context.ack({ push: [{ queue: 'receipts', payload: { of: message.data.to } }] })
  })
  const receipts: string[] = []
  rouse.queue('receipts').work(async ({ data }) => void receipts.push(data.of))
  await rouse.queue('emails').push({ to: 'ann' })
  await rouse.queue('emails').push({ to: 'later' }, { delay: '9h', partition: 'other' })
  await rouse.drain()
  t.same(attempts, ['ann 1', 'ann 2', 'ann 3'])
  t.same(receipts, ['ann'])
  t.equal(rouse.now.getTime() - start.getTime(), 60_000 + 3 * 3_600_000)
  await rouse.close()
})

test('a stored payload does not change with the object that was pushed', async (t) => {
  const rouse = testRouse<Queues>()
  const payload = { to: 'ann' }
  await rouse.queue('emails').push(payload)
  payload.to = 'changed'
  t.match(await rouse.queue('emails').pop(), [{ data: { to: 'ann' } }])
  t.match(rouse.pushed('emails'), [{ data: { to: 'ann' } }])
  await rouse.close()
})
