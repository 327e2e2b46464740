// One example per endpoint, for the documentation. A test replays each against a node and expects its status.

/** Values of path parameters. Ids are those of a message that the test has pushed and popped before. */
export const exampleParams: Readonly<Record<string, string>> = {
  queue: 'emails',
  partition: 'customer-42',
  group: 'mailer',
  name: 'nightly-report',
  leaseId: '5b1d7c1e-8a34-4f0e-9d52-6a1f0c9d2e10',
  partitionId: '1',
  transactionId: 'welcome-42',
  id: '019aa7c4-9b3f-7c11-8f52-6a1f0c9d2e10',
  keyId: 'g7Wm2QxT0bLz',
  folder: 'decisions',
  page: 'index.html',
  file: 'app.js',
}

export interface Example {
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** The status of the response; 200 by default. Every example succeeds. */
  readonly status?: number
}

const { leaseId, partitionId, transactionId } = exampleParams
const receipt = 'Wx18Hoo0Tw6dUmofDJ0uEAAAAAAAAAABAAAAAAAAAAEq9hX1'
const byIds = { transactionId, partitionId, leaseId }
const span = { from: '2026-01-01T00:00:00Z', to: '2030-01-01T00:00:00Z' }
const item = {
  queue: 'emails',
  partition: 'customer-42',
  payload: { to: 'ada@example.com', template: 'welcome' },
  dedupeKey: 'welcome-42',
}
const pop = { batch: '10', wait: 'true', timeout: '30000' }
const seek = { timestamp: '2026-11-17T00:00:00Z' }
const settings = { namespace: 'shop', options: { leaseTime: 60, retryLimit: 5 } }
const schedule = {
  queue: 'reports',
  cron: '0 3 * * *',
  timeZone: 'Europe/Berlin',
  payload: { kind: 'nightly' },
}
const redrive = { queue: 'emails', where: { errorCode: 'SMTP_451' }, rate: 100 }
const popBody = { batch: 10, wait: true, timeout: 1000, acks: [{ receipt, status: 'completed' }] }

/** By method and path. An endpoint that is not listed needs only path parameters. */
export const examples: Readonly<Record<string, Example>> = {
  'POST /api/v1/push': { body: { items: [{ ...item, dedupeKey: 'welcome-43' }] }, status: 201 },
  'GET /api/v1/pop/queue/:queue': { query: pop },
  'GET /api/v1/pop/queue/:queue/partition/:partition': { query: { autoAck: 'true' } },
  'GET /api/v1/pop': { query: { ...pop, namespace: 'shop' } },
  'POST /api/v1/pop/queue/:queue': { body: popBody },
  'POST /api/v1/pop/queue/:queue/partition/:partition': { body: popBody },
  'POST /api/v1/pop': { body: { ...popBody, namespace: 'shop' } },
  'POST /api/v1/ack': { body: { receipt, status: 'failed', error: 'mailbox full', delayMs: 5000 } },
  'POST /api/v1/ack/batch': { body: { acknowledgments: [{ ...byIds, status: 'completed' }] } },
  'POST /api/v1/transaction': {
    body: {
      operations: [
        { type: 'ack', receipt, status: 'completed' },
        { type: 'push', items: [{ queue: 'sent', payload: { id: 42 } }] },
      ],
    },
  },
  'POST /api/v1/lease/:leaseId/extend': { body: { seconds: 120 } },
  'GET /api/v1/messages': { query: { queue: 'emails', status: 'leased', limit: '10' } },
  'GET /api/v1/messages/:id': { query: { wait: 'true', timeout: '200' } },
  'POST /api/v1/messages/:id/progress': { body: { receipt, progress: { percent: 40 } } },
  'DELETE /api/v1/messages': { query: { queue: 'emails', state: 'ready', dryRun: 'true' } },
  'GET /api/v1/dlq': { query: { queue: 'emails', limit: '10', ...span } },
  'DELETE /api/v1/dlq': { query: { queue: 'emails', errorCode: 'SMTP_451' } },
  'GET /api/v1/dlq/groups': { query: { queue: 'emails' } },
  'POST /api/v1/dlq/redrive': { body: redrive, status: 202 },
  'GET /api/v1/dead-letters': { query: { queue: 'emails', errorCode: 'SMTP_451' } },
  'DELETE /api/v1/dead-letters': { query: { queue: 'emails', ...span } },
  'GET /api/v1/dead-letters/errors': { query: { queue: 'emails' } },
  'POST /api/v1/dead-letters/redrives': { body: redrive, status: 202 },
  'POST /api/v1/traces': {
    body: { partitionId, transactionId, eventType: 'sent', traceNames: ['order-7'], data: {} },
    status: 201,
  },
  'GET /api/v1/traces/:partitionId/:transactionId': { query: { limit: '10' } },
  'GET /api/v1/traces/by-name/:name': { query: { limit: '10', ...span } },
  'GET /api/v1/traces/names': { query: { search: 'order', limit: '10' } },
  'POST /api/v1/configure': { body: { queue: 'emails', ...settings } },
  'GET /api/v1/queues': { query: { namespace: 'shop', limit: '100' } },
  'PUT /api/v1/queues/:queue': { body: settings },
  'PATCH /api/v1/queues/:queue': { body: { options: { leaseTime: 120 } } },
  'GET /api/v1/resources/queues': { query: { search: 'mail', limit: '100' } },
  'GET /api/v1/queues/:queue/why': { query: { consumerGroup: 'mailer' } },
  'GET /api/v1/schedules': { query: { limit: '100' } },
  'POST /api/v1/schedules': { body: { name: 'nightly-report', ...schedule } },
  'PUT /api/v1/schedules/:name': { body: schedule },
  'GET /api/v1/groups': { query: { limit: '100' } },
  'POST /api/v1/groups/:group/queues/:queue/seek': { body: { toEnd: true } },
  'GET /api/v1/consumer-groups': { query: { limit: '100' } },
  'GET /api/v1/consumer-groups/lagging': { query: { minLagSeconds: '60' } },
  'POST /api/v1/consumer-groups/:group/queues/:queue/seek': { body: seek },
  'POST /api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek': { body: seek },
  'POST /api/v1/consumer-groups/:group/queues/:queue/subscription': {
    body: { subscriptionMode: 'new' },
  },
  'POST /api/v1/consumer-groups/:group/subscription': {
    body: { subscriptionFrom: '2026-11-17T00:00:00Z' },
  },
  'GET /stats': { query: { scope: 'node' } },
  'POST /api/v1/keys': {
    body: { name: 'shop', preset: 'producer', queue: 'orders-*' },
    status: 201,
  },
  'POST /api/v1/keys/:keyId/rotate': { body: { graceSeconds: 3600 }, status: 201 },
  'POST /api/v1/session': {
    body: { key: 'rouse_g7Wm2QxT0bLz_5bFvKq0SxD3nYcW8hRj1LmZt7AeUo4PiGk6wQs22rXNvE' },
  },
  'GET /api/v1/series': { query: { queue: 'emails', resolution: 'minute' } },
  'GET /api/v1/events': { query: { queues: 'emails', once: 'true' } },
  'GET /api/v1/audit': { query: { outcome: 'refused', limit: '10' } },
}
