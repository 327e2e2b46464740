import { messageIdAt, withPlace } from '@rouse/protocol'
import {
  addTrace,
  attemptTraces,
  cancelMessage,
  createKey,
  endedMessages,
  findMessage,
  findRedrive,
  forgetfulQueue,
  holdingsOf,
  listMessages,
  markKeysUsed,
  messageById,
  newestGroup,
  partitionNames,
  pop,
  pruneAudit,
  purgeUnderWay,
  queueFacts,
  queueOptions,
  queuePlace,
  readAudit,
  readKeyTable,
  revokeKey,
  runNow,
  stats,
  writeAudit,
} from '@rouse/storage'
import type pg from 'pg'
import { type Measure, sql } from '../support/measure.ts'
import { leasesIn, type SkewedDatabase } from '../support/skewed-database.ts'

const stored = withPlace('019a0000-0000-7000-8000-000000000001')
const explicit = '019a0000-0000-7000-8000-000000000002'

/** Cancels the first and the last of the messages that `g01` has not received. */
async function cancelled(client: pg.ClientBase, { partitions }: SkewedDatabase): Promise<void> {
  await client.query(
    'insert into rouse.message_options (partition_id, seq, cancelled_at) select $1, s, now() from unnest($2::bigint[]) s',
    [partitions.q00070, [6, 10]],
  )
  await client.query('update rouse.partitions set options_until = 11 where id = $1', [
    partitions.q00070,
  ])
}

const key = {
  id: 'aaaaaaaaaaaa',
  name: 'k',
  hash: Buffer.alloc(32),
  grants: ['push:*'],
  limits: {},
  createdBy: 'me',
  expiresAt: null,
}

const audited = { principal: 'me', verb: 'manage', target: 'q', outcome: 'done' } as const

export const lookups: readonly Measure[] = [
  { name: 'an API key created', call: (probe) => createKey(probe, key) },
  { name: 'an API key revoked', call: (probe) => revokeKey(probe, key.id) },
  { name: 'API keys marked as used', call: (probe) => markKeysUsed(probe, [key.id]) },
  { name: 'the live API keys', call: (probe) => readKeyTable(probe) },
  { name: 'an audit entry', call: (probe) => writeAudit(probe, 'n', [audited]) },
  { name: 'the newest audit entries', call: (probe) => readAudit(probe, { limit: 100 }) },
  { name: 'old audit entries removed', call: (probe) => pruneAudit(probe, 0, 100) },
  {
    name: 'a message of the hot queue by its key',
    call: (probe, { partitions, size }) => findMessage(probe, partitions.hot, `k${size.hot - 7}`),
  },
  {
    name: 'an old message of the hot queue whose key has expired',
    call: (probe, { partitions, size }) =>
      findMessage(probe, partitions.hot, `k${size.hot - 2_000}`),
    grows: {
      why: 'it scans the newest 50,000 messages of the partition',
      pagesMax: () => 50_000 / 5,
    },
  },
  {
    name: 'a leased message by its position',
    call: (probe, { partitions }) => findMessage(probe, partitions.cold, `${partitions.cold}-1`),
  },
  {
    name: 'a leased message of an unordered queue by its position',
    call: (probe, { partitions }) => findMessage(probe, partitions.loose, `${partitions.loose}-7`),
    grows: { why: 'it reads the leases of its partition', pagesMax: (size) => 100 + size.loose },
  },
  {
    name: 'whether a message of the hot queue has ended',
    prepare: (client, { partitions, size }) =>
      client.query('update rouse.messages set id = $1 where partition_id = $2 and seq = $3', [
        stored,
        partitions.hot,
        size.hot - 7,
      ]),
    call: (probe, { partitions, size }) => {
      const id = messageIdAt(stored, partitions.hot, size.hot - 7)
      return endedMessages(probe, [{ id, groups: { newestId: 0 } }])
    },
  },
  {
    name: 'the newest group of the hot queue',
    call: (probe) => newestGroup(probe, 'hot'),
  },
  {
    name: 'a message of the hot queue by its id',
    prepare: (client, { partitions, size }) =>
      client.query('update rouse.messages set id = $1 where partition_id = $2 and seq = $3', [
        stored,
        partitions.hot,
        size.hot - 7,
      ]),
    call: (probe, { partitions, size }) =>
      messageById(probe, messageIdAt(stored, partitions.hot, size.hot - 7)),
  },
  {
    name: 'a message by an id that names no place',
    prepare: (client, { partitions, size }) =>
      client.query('insert into rouse.message_ids values ($1, $2, $3)', [
        explicit,
        partitions.hot,
        size.hot - 7,
      ]),
    call: (probe) => messageById(probe, explicit),
  },
  { name: 'a message that is nowhere, by its id', call: (probe) => messageById(probe, explicit) },
  {
    name: 'a message of a small queue cancelled',
    prepare: (client, { partitions }) =>
      client.query('insert into rouse.message_ids values ($1, $2, 10)', [
        explicit,
        partitions.q00070,
      ]),
    call: (probe) => cancelMessage(probe, explicit),
  },
  {
    name: 'a page of cancelled messages',
    prepare: cancelled,
    call: (probe) =>
      listMessages(
        probe,
        { queue: 'q00070', partition: 'a', group: 'g01', limit: 10, status: 'cancelled' },
        undefined,
      ),
  },
  {
    name: 'stats of a queue with cancelled messages',
    prepare: cancelled,
    call: (probe) => stats(probe, 'q00070'),
    grows: { why: 'it reads all leases once', pagesMax: (size) => 2_000 + leasesIn(size) / 5 },
  },
  {
    name: 'why a queue with cancelled messages does not move',
    prepare: cancelled,
    call: (probe) => queueFacts(probe, 'q00070', undefined),
  },
  {
    name: 'a pop that skips cancelled messages',
    prepare: cancelled,
    call: (probe) =>
      pop(probe, {
        source: { queue: 'q00070' },
        group: 'g01',
        demands: [{ batch: 20, partitions: 2, holder: 'growth' }],
      }),
  },
  {
    name: 'a page of messages for a node of the previous release',
    call: sql(`select * from rouse.list_messages('q00070', 'a', 'g01', null, 0, 0, 10)`),
  },
  {
    name: 'a scheduled message cancelled',
    prepare: (client) =>
      client.query(
        `insert into rouse.scheduled (queue, partition, due_at, message_id, payload, origin, created_at)
         values ('q00070', 'p0', 'infinity', $1, '1', 'broker', now())`,
        [explicit],
      ),
    call: (probe) => cancelMessage(probe, explicit),
  },
  {
    name: 'a message of the hot queue that runs now',
    prepare: (client, { partitions, size }) =>
      client.query('insert into rouse.message_ids values ($1, $2, $3)', [
        explicit,
        partitions.hot,
        size.hot - 7,
      ]),
    call: (probe) => runNow(probe, explicit),
  },
  {
    name: 'a missing message of a small queue',
    call: (probe, { partitions }) => findMessage(probe, partitions.q00070, 'nothing'),
  },
  {
    name: 'failed attempts at a message',
    call: (probe, { partitions }) =>
      attemptTraces(probe, partitions.q00070, `${partitions.q00070}-1`),
  },
  {
    name: 'an event added',
    call: (probe, { partitions }) =>
      addTrace(probe, {
        partitionId: partitions.q00070,
        transactionId: 't',
        consumerGroup: null,
        traceNames: ['name7'],
        eventType: 'info',
        data: '{}',
      }),
  },
  {
    name: 'the messages of a lease',
    call: (probe, { partitions }) =>
      holdingsOf(
        probe,
        ['00000000-0000-0000-0000-000000000001'],
        [{ partitionId: partitions.cold, transactionId: `${partitions.cold}-1` }],
        { timeoutMs: 60_000 },
      ),
    prepare: (client, { partitions }) =>
      client.query(
        `update rouse.leases set id = '00000000-0000-0000-0000-000000000001' where partition_id = $1`,
        [partitions.cold],
      ),
  },
  {
    name: 'why a small queue does not deliver',
    call: (probe) => queueFacts(probe, 'q00070', undefined),
  },
  {
    name: 'why the hot queue does not deliver',
    call: (probe) => queueFacts(probe, 'hot', undefined),
    grows: {
      why: 'it counts its letters, retries and scheduled messages',
      pagesMax: (size) => 1_000 + size.letters,
    },
  },
  {
    name: 'why a group of the cold queue does not deliver',
    call: (probe) => queueFacts(probe, 'cold', 'g01'),
    grows: { why: 'it reads every lane of the group', pagesMax: (size) => 1_000 + size.cold * 15 },
  },
  {
    name: 'how full a queue with a limit is',
    call: (probe) => queueFacts(probe, 'limited', undefined),
  },
  { name: 'options of a queue', call: (probe) => queueOptions(probe, 'q00070') },
  { name: 'version, namespace and task of a queue', call: (probe) => queuePlace(probe, 'q00070') },
  {
    name: 'queues with a short dedupe window',
    call: (probe) => forgetfulQueue(probe, ['q00070', 'hot'], 1_000),
  },
  {
    name: 'the names of a partition',
    call: (probe, { partitions }) => partitionNames(probe, partitions.cold),
  },
  { name: 'a purge in progress', call: (probe) => purgeUnderWay(probe, 'q00070') },
  {
    name: 'a redrive',
    call: (probe) => findRedrive(probe, '00000000-0000-0000-0000-000000000001'),
  },
]
