// Bad input raises an error of Rouse that names what is wrong, and changes nothing.
import { randomUUID } from 'node:crypto'
import { ack, configure, extend, pop, push, transaction } from '@rouse/storage'
import { test } from 'tap'
import { demand, item, message, openStorage, refusal, type Storage } from '../support/storage.ts'
import { dumpTables } from '../support/table-dump.ts'

interface Case {
  readonly call: (storage: Storage) => Promise<unknown>
  readonly detail?: Record<string, unknown>
}

const id = randomUUID()
const good = () => [message('q', 'p', 1), message('q', 'p', 2)]
const pushSql =
  'select * from rouse.push_v2($1::text[], $2::text[], $3::int[], $4::uuid[], $5::text[])'
const popSql = `select * from rouse.pop($1, null, null, null, $2, $3::int[], $4::int[], null, null, $5::text[], $6)`
const ackSql = 'select * from rouse.ack($1::uuid[], $2::bigint[], $3::bigint[], $4::text[])'

const refused: Record<string, Case> = {
  'a push with an empty partition name': {
    call: ({ pool }) => push(pool, [...good(), message('q', '', 3)]),
    detail: { code: 'invalid_name', field: 'partition', item: 3 },
  },
  'a push with a queue name of 256 bytes': {
    call: ({ pool }) => push(pool, [...good(), message('é'.repeat(128), 'p', 3)]),
    detail: { code: 'invalid_name', field: 'queue', item: 3 },
  },
  'a push with a control character in a queue name': {
    call: ({ pool }) => push(pool, [...good(), message('a\nb', 'p', 3)]),
    detail: { code: 'invalid_name', item: 3 },
  },
  'a push to the queue ".."': {
    call: ({ pool }) => push(pool, [message('..', 'p', 3)]),
    detail: { code: 'invalid_name', item: 1 },
  },
  'a push with a negative delay': {
    call: ({ pool }) => push(pool, [...good(), message('q', 'p', 3, { delayMs: -1 })]),
    detail: { code: 'invalid_delay', item: 3 },
  },
  'a push with a null payload': {
    call: ({ rows }) => rows(pushSql, [['q'], ['p'], [1, 1], [id, id], ['1', null]]),
    detail: { code: 'invalid_payload', item: 2 },
  },
  'a push with fewer ids than payloads': {
    call: ({ rows }) => rows(pushSql, [['q'], ['p'], [1, 1], [id], ['1', '2']]),
  },
  'a push with fewer partitions than queues': {
    call: ({ rows }) => rows(pushSql, [['q', 'r'], ['p'], [1, 2], [id, id], ['1', '2']]),
  },
  'a push whose messages are not in groups by target': {
    call: ({ rows }) =>
      rows(pushSql, [
        ['q', 'r'],
        ['p', 'p'],
        [1, 2, 1],
        [id, id, id],
        ['1', '2', '3'],
      ]),
  },
  'a push that names a target twice': {
    call: ({ rows }) =>
      rows(pushSql, [
        ['q', 'q'],
        ['p', 'p'],
        [1, 2],
        [id, id],
        ['1', '2'],
      ]),
  },
  'a push of nulls': { call: ({ rows }) => rows(pushSql, [null, null, null, null, null]) },
  'a pop of nulls': { call: ({ rows }) => rows(popSql, ['q', 'g', null, null, null, 'all']) },
  'a pop with fewer holders than batches': {
    call: ({ rows }) => rows(popSql, ['q', 'g', [1, 1], [1, 1], ['x'], 'all']),
  },
  'a pop by a group without a name': {
    call: ({ pool }) => pop(pool, { source: { queue: 'q' }, group: '', demands: [demand({})] }),
    detail: { code: 'invalid_name', field: 'consumerGroup' },
  },
  'a first pop with an unknown subscription': {
    call: ({ rows }) => rows(popSql, ['q', 'born', [1], [1], ['x'], 'some']),
    detail: { field: 'subscriptionMode' },
  },
  'a first pop from no time': {
    call: ({ rows }) => rows(popSql, ['q', 'born', [1], [1], ['x'], 'from']),
  },
  'an ack with an unknown status': {
    call: async ({ lease, pool }) => ack(pool, [item(await lease('q'), 0, 'lost' as 'failed')]),
    detail: { code: 'invalid_status', field: 'status' },
  },
  'an ack with a negative delay': {
    call: async ({ lease, pool }) =>
      ack(pool, [item(await lease('q'), 0, 'retry', { delayMs: -1 })]),
    detail: { code: 'invalid_delay' },
  },
  'an ack with fewer seqs than leases': {
    call: ({ rows }) => rows(ackSql, [[id, id], [1, 1], [1], null]),
  },
  'an ack with fewer statuses than leases': {
    call: ({ rows }) => rows(ackSql, [[id, id], [1, 1], [1, 2], ['failed']]),
  },
  'an extend by nothing': {
    call: ({ pool }) => extend(pool, [{ leaseId: id, durationMs: 0 }]),
  },
  'a transaction with a bad message': {
    call: async ({ lease, pool }) =>
      transaction(pool, {
        acks: [item(await lease('q'))],
        pushes: [...good(), message('q', 'p\u0000'.replace('\u0000', '\u0001'), 3)],
      }),
    detail: { code: 'invalid_name', field: 'partition', item: 3 },
  },
  'a queue configured without a name': {
    call: ({ pool }) => configure(pool, { queue: '', options: {} }),
    detail: { code: 'invalid_name', field: 'queue' },
  },
  'an unknown option': {
    call: ({ set }) => set('q', { retries: 3 }),
    detail: { code: 'unknown_option', field: 'retries' },
  },
  'an option out of bounds': {
    call: ({ set }) => set('q', { leaseTime: 0 }),
    detail: { code: 'invalid_option', field: 'leaseTime' },
  },
  'an option that is a fraction': {
    call: ({ set }) => set('q', { retryLimit: 1.5 }),
    detail: { field: 'retryLimit' },
  },
  'an option of the wrong kind': {
    call: ({ set }) => set('q', { ordering: 'random' }),
    detail: { field: 'ordering' },
  },
  'an empty ladder': {
    call: ({ set }) => set('q', { retryBackoffMs: [] }),
    detail: { field: 'retryBackoffMs' },
  },
  'options that are no object': {
    call: ({ rows }) => rows(`select rouse.configure('q', null, null, '[]')`),
    detail: { field: 'options' },
  },
}

for (const [what, { call, detail = {} }] of Object.entries(refused)) {
  test(`${what} is refused with its reason, and changes nothing`, async (t) => {
    const storage = await openStorage(t)
    await storage.send('q', 'p', ['there'])
    await storage.take('q', { partition: 'nowhere' })
    const before = await dumpTables(storage.pool)
    t.match(await refusal(call(storage)), { state: 'RS400', detail })
    await storage.rows('delete from rouse.leases')
    await storage.rows('update rouse.lanes set next = 1, lease_id = null, ready = true')
    t.same(await dumpTables(storage.pool), before)
  })
}
