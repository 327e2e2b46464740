// Random histories of a correct queue break no rule. With one defect added, the same histories break the rule
// for that defect.
import fc from 'fast-check'
import { test } from 'tap'
import { History } from '../history/history.ts'
import type { HistoryRecord, PopRecord, PushRecord } from '../history/records.ts'
import { QueueModel } from '../support/queue-model.ts'
import { check, type RuleName } from './check.ts'
import { violations } from './summary.ts'

const choices = fc.array(fc.nat(1_000_000), { minLength: 60, maxLength: 400 })

test('a correct queue breaks no rule', async (t) => {
  let [deliveries, duplicates, crashes] = [0, 0, 0]
  fc.assert(
    fc.property(choices, (chosen) => {
      const verdict = check(History.of(new QueueModel(chosen).run()))
      const fired = verdict.rules.filter(({ count }) => count > 0)
      // A short run may deliver nothing.
      const broken = fired.filter(({ rule }) => rule !== 'queues that moved nothing')
      if (broken.length > 0) throw new Error(violations(verdict))
      deliveries += verdict.deliveries
      duplicates += verdict.duplicates
      crashes += verdict.faults
    }),
    { numRuns: 300, seed: 7 },
  )
  t.ok(deliveries > 1_000 && duplicates > 300 && crashes > 300, 'the histories are not empty')
})

type Lie = (records: readonly HistoryRecord[]) => HistoryRecord[] | undefined

const lies: readonly { readonly name: string; readonly rule: RuleName; readonly lie: Lie }[] = [
  { name: 'a message that was never delivered', rule: 'lost', lie: hideOne },
  { name: 'a value that was never pushed', rule: 'unexpected', lie: renameOne },
  { name: 'two messages in the wrong order', rule: 'out of order', lie: swapTwo },
  {
    name: 'a completed message that is delivered again',
    rule: 'unexplained duplicates',
    lie: repeatOne,
  },
  { name: 'a message leased twice', rule: 'overlapping leases', lie: leaseTwice },
  { name: 'two leases on one lane', rule: 'two leases on a lane', lie: leaseTwice },
  { name: 'an ack accepted long after its lease', rule: 'stale acks accepted', lie: ackLate },
  { name: 'an attempt that did not happen', rule: 'wrong attempts', lie: chargeOne },
  { name: 'two ids for one key', rule: 'dedup doubles', lie: storeTwice },
  { name: 'a delivery before its delay is over', rule: 'early deliveries', lie: delayOne },
  {
    name: 'a dead letter with the wrong number of attempts',
    rule: 'wrong dead letters',
    lie: ageLetter,
  },
]

for (const { name, rule, lie } of lies) {
  test(`${name}: ${rule}`, async (t) => {
    let storyWith = 0
    fc.assert(
      fc.property(choices, (chosen) => {
        const records = lie(new QueueModel(chosen).run())
        fc.pre(records !== undefined)
        storyWith += 1
        const verdict = check(History.of(records))
        return verdict.rules.some((checked) => checked.rule === rule && checked.count > 0)
      }),
      { numRuns: 30, seed: 7, maxSkipsPerRun: 1_000 },
    )
    t.ok(storyWith >= 30)
  })
}

function hideOne(records: readonly HistoryRecord[]) {
  const value = okPush(records)?.items[0]?.value
  return value === undefined ? undefined : records.map((record) => without(record, value))
}

function without(record: HistoryRecord, value: string): HistoryRecord {
  const others = <Item extends { readonly value: string }>(items: readonly Item[]): Item[] =>
    items.filter((item) => item.value !== value)
  if (record.kind === 'pop') return { ...record, messages: others(record.messages) }
  if (record.kind === 'ack') return { ...record, acks: others(record.acks) }
  if (record.kind === 'audit') return { ...record, deadLetters: others(record.deadLetters) }
  return record
}

function renameOne(records: readonly HistoryRecord[]) {
  return changed(records, popWith(records, 1), (pop) => ({
    ...pop,
    messages: pop.messages.map((message, i) => (i === 0 ? { ...message, value: 'odd' } : message)),
  }))
}

function swapTwo(records: readonly HistoryRecord[]) {
  const firstSeen = (pop: PopRecord): boolean =>
    pop.messages.every(({ value }) => pops(records).find((other) => handsOut(other, value)) === pop)
  const pop = pops(records).find(
    (candidate) => candidate.messages.length > 1 && firstSeen(candidate),
  )
  return changed(records, pop, (found) => ({ ...found, messages: found.messages.toReversed() }))
}

function repeatOne(records: readonly HistoryRecord[]) {
  const [last] = pops(records)
    .filter(({ messages }) => messages.length > 0)
    .slice(-1)
  const [message] = last?.messages ?? []
  if (last === undefined || message === undefined) return undefined
  const again = { ...message, attempt: message.attempt + 1, receipt: 'again' }
  const pop = { ...last, start: last.end + 5_000, end: last.end + 5_002, messages: [again] }
  return [...records, pop]
}

function leaseTwice(records: readonly HistoryRecord[]) {
  const pop = popWith(records, 1)
  if (pop === undefined || pop.end - pop.start < 2) return undefined
  if (records.some(({ kind }) => kind === 'fault' || kind === 'release')) return undefined
  const messages = pop.messages.map((message) => ({
    ...message,
    receipt: `${message.receipt} too`,
  }))
  return [...records, { ...pop, end: pop.end - 1, messages }]
}

function ackLate(records: readonly HistoryRecord[]) {
  const pop = popWith(records, 1)
  const [message] = pop?.messages ?? []
  if (pop === undefined || message === undefined) return undefined
  const { receipt, transactionId, partitionId, value } = message
  const acks = [
    { receipt, transactionId, partitionId, value, status: 'completed' as const, success: true },
  ]
  const { process, workload, group } = pop
  const [start, end] = [pop.end + 60_000, pop.end + 60_002]
  return [
    ...records,
    { kind: 'ack' as const, process, workload, group, acks, outcome: 'ok' as const, start, end },
  ]
}

function chargeOne(records: readonly HistoryRecord[]) {
  const calm = !records.some(
    (record) => record.kind === 'fault' || (record.kind === 'pop' && record.outcome === 'unknown'),
  )
  if (!calm) return undefined
  const pop = pops(records).find(({ messages }) => messages.some(({ attempt }) => attempt === 1))
  return changed(records, pop, (found) => ({
    ...found,
    messages: found.messages.map((message) => ({ ...message, attempt: message.attempt + 5 })),
  }))
}

function storeTwice(records: readonly HistoryRecord[]) {
  const push = okPush(records)
  if (push === undefined) return undefined
  const items = push.items.map((item) => ({
    ...item,
    result: { status: 'queued' as const, id: `another ${item.value}` },
  }))
  return [...records, { ...push, items }]
}

function delayOne(records: readonly HistoryRecord[]) {
  const push = okPush(records)
  const alone = push?.items.every(
    ({ value }) =>
      records.filter(
        (record) => record.kind === 'push' && record.items.some((item) => item.value === value),
      ).length === 1,
  )
  if (push === undefined || alone !== true) return undefined
  const items = push.items.map((item) => ({ ...item, delayMs: 3_600_000 }))
  return records.map((record) => (record === push ? { ...push, items } : record))
}

function ageLetter(records: readonly HistoryRecord[]) {
  return records.some((record) => record.kind === 'audit' && record.deadLetters.length > 0)
    ? records.map((record) =>
        record.kind === 'audit'
          ? {
              ...record,
              deadLetters: record.deadLetters.map((dead) => ({
                ...dead,
                attempts: dead.attempts + 1,
              })),
            }
          : record,
      )
    : undefined
}

function pops(records: readonly HistoryRecord[]): PopRecord[] {
  return records.filter((record) => record.kind === 'pop')
}

function popWith(records: readonly HistoryRecord[], count: number): PopRecord | undefined {
  return pops(records).find(({ messages }) => messages.length >= count)
}

function handsOut({ messages }: PopRecord, value: string): boolean {
  return messages.some((message) => message.value === value)
}

function okPush(records: readonly HistoryRecord[]): PushRecord | undefined {
  return records.find((record) => record.kind === 'push' && record.outcome === 'ok') as
    | PushRecord
    | undefined
}

function changed(
  records: readonly HistoryRecord[],
  pop: PopRecord | undefined,
  change: (pop: PopRecord) => PopRecord,
): HistoryRecord[] | undefined {
  if (pop === undefined) return undefined
  return records.map((record) => (record === pop ? change(pop) : record))
}
