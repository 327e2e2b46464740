import {
  addTrace,
  attemptTraces,
  createKey,
  findMessage,
  findRedrive,
  forgetfulQueue,
  holdingsOf,
  markKeysUsed,
  partitionNames,
  pruneAudit,
  purgeUnderWay,
  queueFacts,
  queueOptions,
  queuePlace,
  readAudit,
  readKeyTable,
  revokeKey,
  writeAudit,
} from '@rouse/storage'
import type { Measure } from '../support/measure.ts'

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
