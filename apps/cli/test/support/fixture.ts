// Queues in every state that an operator meets, the same for each screen.
import type { TestNode } from './node.ts'

export interface Fixture {
  /** A message whose retry is far away, and which holds its partition. */
  readonly heldId: string
  readonly scheduledId: string
  readonly deadId: string
  /** The receipts of two leased messages. */
  readonly receipts: readonly string[]
}

const hourMs = 3_600_000
const longName = 'thumbnails.generate.high-priority.europe-west'

export async function makeQueues(node: Pick<TestNode, 'call'>): Promise<Fixture> {
  const call: TestNode['call'] = (...request) => node.call(...request)
  const post = (path: string, body?: unknown) => call('POST', `/api/v1${path}`, body)
  const push = (...items: object[]) => post('/push', { items })
  const pop = (queue: string, query: string) => call('GET', `/api/v1/pop/queue/${queue}?${query}`)
  const configure = (queue: string, options: object) => post('/configure', { queue, options })

  await configure('orders', { retryBackoffMs: [hourMs] })
  await push(...[1, 2, 3].map((n) => ({ queue: 'orders', partition: 'eu', payload: { n } })))
  const [held] = (await pop('orders', 'consumerGroup=billing')).messages
  await post('/ack', { receipt: held.receipt, status: 'failed', error: 'card declined' })
  await pop('orders', 'consumerGroup=audit&batch=3&consumer=auditor-1&leaseSeconds=3600')

  const [, , later] = await push(
    { queue: 'emails', payload: { to: 'ann@example.com', subject: 'Welcome' } },
    { queue: 'emails', payload: 'a text that is longer than any screen is wide: '.repeat(8) },
    { queue: 'emails', payload: { to: 'bob@example.com' }, delayMs: hourMs },
  )

  await configure('invoices', { retryLimit: 0 })
  await push(...[1, 2, 3].map((n) => ({ queue: 'invoices', payload: { invoice: n } })))
  const [first, second, third] = (await pop('invoices', 'batch=3&consumer=worker-7')).messages
  const failure = { status: 'failed', error: 'mailbox busy, try later', errorCode: 'SMTP_451' }
  await post('/ack', { receipt: first.receipt, ...failure })
  await post('/ack', { receipt: second.receipt, ...failure })
  const error = 'Cannot read properties of undefined (reading "total")'
  await post('/ack', { receipt: third.receipt, status: 'failed', error, errorCode: 'TypeError' })

  await push({ queue: 'reports', payload: null })
  await post('/queues/reports/pause')

  await push(...[1, 2, 3].map((n) => ({ queue: longName, payload: { n } })))
  const { messages } = await pop(longName, 'batch=2&leaseSeconds=3600')

  await call('PUT', '/api/v1/schedules/nightly', {
    queue: 'reports',
    cron: '0 3 1 1 *',
    timeZone: 'Europe/Berlin',
    payload: { kind: 'daily' },
  })
  return {
    heldId: held.id,
    scheduledId: later.id,
    deadId: first.id,
    receipts: messages.map(({ receipt }: { receipt: string }) => receipt),
  }
}

export async function removeQueues(node: Pick<TestNode, 'call'>): Promise<void> {
  const call: TestNode['call'] = (...request) => node.call(...request)
  const { queues } = await call('GET', '/api/v1/queues')
  for (const { queue } of queues) {
    await call('DELETE', `/api/v1/queues/${encodeURIComponent(queue)}`)
  }
  const { schedules } = await call('GET', '/api/v1/schedules')
  for (const { name } of schedules) await call('DELETE', `/api/v1/schedules/${name}`)
}
