import type { AckOutcome } from '@rouse/sidecar'
import type { AckItem, Lease, NewMessage } from '@rouse/storage'
import { test } from 'tap'
import { countedFields } from '../../src/observe/queue-counts.ts'
import { WorkerObserver } from '../../src/observe/worker-observer.ts'

const accepted: AckOutcome = { accepted: true, deadLettered: false }

function message(queue: string): NewMessage {
  return { queue, partition: 'Default', id: 'id', payload: '1' }
}

function lease(queue: string, partitionId: string, messages: number, attempt = 1): Lease {
  const one = {
    seq: 1,
    id: 'id',
    createdAtMs: 0,
    pushedAtMs: 0,
    transactionId: null,
    traceId: null,
  }
  return {
    demand: 0,
    leaseId: `lease of ${partitionId}`,
    queue,
    partitionId,
    partition: 'Default',
    attempt,
    expiresAtMs: 0,
    messages: Array.from({ length: messages }, () => ({ ...one, payload: '1', headers: null })),
  }
}

function ackOf(partitionId: string, status: AckItem['status'] = 'completed'): AckItem {
  return { leaseId: `lease of ${partitionId}`, message: { partitionId, seq: 1 }, status }
}

function start() {
  const observer = new WorkerObserver({
    wallMs: () => 0,
    nowMs: () => 0,
    node: 'a',
    worker: 1,
    slowMs: 1_000,
  })
  const take = () =>
    Object.fromEntries(
      observer.take().queues.map(([queue, counts]) => {
        const named = counts.map((count, i) => [countedFields[i], count] as const)
        return [queue, Object.fromEntries(named.filter(([, count]) => count > 0))]
      }),
    )
  const deliver = (leases: Lease[], isAutoAcked = false) => {
    observer.delivered(leases, {
      databaseTimeMs: 5,
      source: 'local',
      group: 'default',
      hintMs: 0,
      popMs: 1,
      waitedMs: () => 0,
      holder: () => '',
      isAutoAcked: () => isAutoAcked,
    })
  }
  return { observer, take, deliver }
}

test('pushes are counted by queue and result', (t) => {
  const { observer, take } = start()
  observer.pushed(
    [message('a'), message('a'), message('b'), message('a')],
    [
      { status: 'queued', messageId: '1', partitionId: '1', partition: 'Default', seq: 1 },
      { status: 'scheduled', messageId: '2', partitionId: '1', partition: 'Default' },
      { status: 'queued', messageId: '3', partitionId: '2', partition: 'Default', seq: 1 },
      { status: 'duplicate', messageId: '1', partitionId: '1', partition: 'Default' },
    ],
  )
  t.same(take(), { a: { pushed: 1, scheduled: 1, duplicates: 1 }, b: { pushed: 1 } })
  t.same(take(), {}, 'each count is taken once')
  t.end()
})

test('deliveries and acks are counted by queue, and acks by how they end', (t) => {
  const { observer, take, deliver } = start()
  deliver([lease('a', '1', 3), lease('a', '2', 1, 2)])
  const items = [ackOf('1'), ackOf('1', 'failed'), ackOf('2', 'dlq'), ackOf('2')]
  const [second, third] = [{ ...accepted }, { accepted: true, deadLettered: true }]
  observer.acked(items, [accepted, second, third, { accepted: false, deadLettered: false }])
  t.same(take(), {
    a: {
      delivered: 4,
      redelivered: 1,
      completed: 1,
      failed: 1,
      buried: 1,
      deadLettered: 1,
      staleAcks: 1,
    },
  })
  t.end()
})

test('messages that are acknowledged on delivery count as completed', (t) => {
  const { take, deliver } = start()
  deliver([lease('a', '1', 3)], true)
  t.same(take(), { a: { delivered: 3, completed: 3 } })
  t.end()
})

test('an ack of a whole lease counts its messages', (t) => {
  const { observer, take, deliver } = start()
  deliver([lease('a', '1', 3)])
  take()
  observer.acked([{ leaseId: 'lease of 1' }], [accepted])
  t.same(take(), { a: { completed: 3 } })
  observer.acked([{ leaseId: 'lease of another worker' }], [accepted])
  t.same(take(), {}, 'unless another worker delivered it')
  t.end()
})

test('acks of unknown partitions are counted after one lookup for all of them', async (t) => {
  const { observer, take } = start()
  const asked: (readonly string[])[] = []
  const lookUp = async (ids: readonly string[]) => {
    asked.push(ids)
    return new Map([
      ['7', 'a'],
      ['8', 'b'],
    ])
  }
  observer.acked([ackOf('7'), ackOf('8'), ackOf('7'), ackOf('9')], Array(4).fill(accepted))
  t.same(take(), {})
  await observer.resolve(lookUp)
  t.same(take(), { a: { completed: 2 }, b: { completed: 1 } })
  observer.acked([ackOf('7')], [accepted])
  await observer.resolve(lookUp)
  t.same(take(), { a: { completed: 1 } })
  t.same(asked, [['7', '8', '9']], 'a partition is looked up once')
})

test('acks that come during a lookup, or before one that fails, are not lost', async (t) => {
  const { observer, take } = start()
  observer.acked([ackOf('7')], [accepted])
  let fail: (error: Error) => void = () => {}
  const failing = observer.resolve(() => new Promise((_, reject) => (fail = reject)))
  observer.acked([ackOf('7'), ackOf('8')], [accepted, accepted])
  fail(new Error('the database does not answer'))
  await failing
  await observer.resolve(async () => {
    observer.acked([ackOf('9')], [accepted])
    return new Map([
      ['7', 'a'],
      ['8', 'a'],
    ])
  })
  t.same(take(), { a: { completed: 3 } })
  await observer.resolve(async (ids) => new Map(ids.map((id) => [id, 'late'])))
  t.same(take(), { late: { completed: 1 } })
})
