// Sequences written by hand. The product passes the sequence of each seeded bug without the bug and fails it
// with the bug. The other sequences are those on which the model was once wrong.
import { test } from 'tap'
import { modelBug, modelBugs } from './bugs.ts'
import { startProduct } from './product.ts'
import { runSequence } from './run.ts'
import { Mismatch } from './verb.ts'
import { anyPop } from './verbs/consuming.ts'
import { plainItem } from './verbs/producing.ts'
import { plainUnique } from './verbs/unique.ts'
import { verbs } from './verbs/verbs.ts'

type Line = readonly [verb: string, args: unknown]

const latest = { index: 0, stale: false }
const fail = { ...latest, by: 'receipt', group: undefined, ending: { status: 'dlq' } }
const giveBack = { ...fail, ending: { status: 'retry' } }
const age = { queue: 'a', options: { ttl: 20 } }
const seekBack = { place: { queue: 'a', group: '__QUEUE_MODE__' }, back: 30_000 }
const growing = { type: 'exponential', maxMs: 50_000, baseMs: 1_000, factor: 7, jitter: false }
const withResult = { index: 0, ending: { status: 'completed', result: 7 }, by: 'receipt' }
const rate = { limit: 2, perMs: 10_000 }
const noFilter = { like: {}, any: undefined, number: 0 }
const expiring = { ...plainItem, ttlMs: 10_000 }
const keyedItem = { ...plainItem, key: 'k' }
const twoPartitions = [plainItem, { ...plainItem, partition: 'p' }]

const allOf = {
  index: 0,
  state: 'ready',
  group: '__QUEUE_MODE__',
  isOneByOne: false,
  dryRun: false,
}
const ackFailed = { ...fail, ending: { status: 'failed' } }

const shows: Readonly<Record<string, { lines: readonly Line[]; says: RegExp }>> = {
  'miss-the-first-ready-message': {
    lines: [
      ['push', [plainItem, plainItem]],
      ['pop', { ...anyPop, batch: 1 }],
      ['ack', ackFailed],
      ['cancel all ready or retrying', { ...allOf, state: 'retrying' }],
      ['cancel all ready or retrying', allOf],
    ],
    says: /matched 0 of 1/,
  },
  'take-the-limit-of-the-queue': {
    lines: [
      ['push', [{ ...plainItem, retryLimit: 0 }, plainItem]],
      ['pop', anyPop],
      ['ack', ackFailed],
    ],
    says: /the dlq of an ack is undefined instead of true/,
  },
  'forget-the-options-of-delayed-messages': {
    lines: [
      ['push', [{ ...plainItem, delayMs: 1_000, retryLimit: 0 }]],
      ['advance', 40_000],
      ['pop', anyPop],
      ['ack', ackFailed],
    ],
    says: /the dlq of an ack is undefined instead of true/,
  },
  'deliver-expired-messages': {
    lines: [
      ['push', [{ ...plainItem, ttlMs: 10_000 }, plainItem]],
      ['advance', 40_000],
      ['pop', { ...anyPop, batch: 1 }],
    ],
    says: /gave __QUEUE_MODE__ 1; it should get the first of 2/,
  },
  'rotate-over-priorities': {
    lines: [
      ['push', [plainItem, plainItem, plainItem]],
      ['push', [{ ...plainItem, priority: 3 }]],
      ['pop', { ...anyPop, batch: 1, partitions: 1 }],
      ['pop', { ...anyPop, batch: 1, partitions: 1 }],
      ['pop', { ...anyPop, batch: 1, partitions: 1 }],
    ],
    says: /got priorities \d of .* although it has messages of priority 3/,
  },
  'keep-results-of-rejected-acks': {
    lines: [
      ['push', [plainItem]],
      ['pop', anyPop],
      ['ack batch', { list: [withResult, withResult], stale: false, twice: true }],
    ],
    says: /expected 200/,
  },
  'leave-results-behind': {
    lines: [
      ['push', [plainItem]],
      ['pop', anyPop],
      ['ack', { ...fail, ending: { status: 'completed', result: 7 } }],
      ['configure', { queue: 'a', options: { completedRetentionSeconds: 1 } }],
      ['retain', { worksOff: undefined, afterMs: 90_000_000 }],
    ],
    says: /the tables have in addition:\s+reported .* 7 null/,
  },
  'lease-messages-together': {
    lines: [
      ['push', [plainItem, plainItem]],
      ['pop', { ...anyPop, each: true }],
    ],
    says: /shares its lease/,
  },
  'never-shorten-a-lease': {
    lines: [
      ['push', [plainItem]],
      ['pop', anyPop],
      ['extend exactly', { ...latest, seconds: 10 }],
    ],
    says: /extended to/,
  },
  'accept-progress-of-ended-messages': {
    lines: [
      ['push', [plainItem, plainItem]],
      ['pop', anyPop],
      ['ack', { ...fail, ending: { status: 'completed' } }],
      ['report progress', { index: 0, stale: true, progress: 1 }],
    ],
    says: /expected 409/,
  },
  'forget-completed-attempts': {
    lines: [
      ['configure', { queue: 'a', options: { history: 'all' } }],
      ['push', [{ ...plainItem, partition: 'p' }]],
      ['pop', anyPop],
      ['ack', { ...fail, ending: { status: 'completed' } }],
    ],
    says: /and lack:\s+recorded .* 1 1/,
  },
  'deliver-cancelled-messages': {
    lines: [
      ['push', [plainItem, plainItem]],
      ['subscribe', { place: { queue: 'a', group: '__QUEUE_MODE__' }, from: 'all' }],
      ['cancel', { index: 2 }],
      ['pop', { ...anyPop, batch: 1, partitions: 1 }],
    ],
    says: /gave __QUEUE_MODE__ 1; it should get the first of 2/,
  },
  'free-the-key-of-a-cancelled-message': {
    lines: [
      ['push', [keyedItem]],
      ['cancel', { index: 1 }],
      ['push', [keyedItem]],
    ],
    says: /item 0 is queued instead of duplicate/,
  },
  'hold-a-lane-for-a-cancelled-message': {
    lines: [
      ['push', [plainItem]],
      ['pop', anyPop],
      ['ack', { ...giveBack, ending: { status: 'retry', delayMs: 60_000 } }],
      ['cancel', { index: 1 }],
    ],
    says: /the tables have in addition:\s+pending .* 1 after 0/,
  },
  'lose-a-released-letter': {
    lines: [
      ['push', [plainItem]],
      ['pop', anyPop],
      ['ack', fail],
      ['redrive', { where: noFilter, dryRun: false, late: true }],
      ['pop', anyPop],
      ['release', latest],
      ['pop', anyPop],
    ],
    says: /got nothing; __QUEUE_MODE__ should get a\/independent seq 1/,
  },
  'take-dead-letters-for-redriven': {
    lines: [
      ['push', [plainItem]],
      ['pop', anyPop],
      ['ack', fail],
      ['seek', seekBack],
      ['pop', anyPop],
      ['ack', giveBack],
      ['configure', age],
      ['advance', 40_000],
      ['pop', anyPop],
    ],
    says: /a\/independent gave/,
  },
  'forget-redriven-messages': {
    lines: [
      ['push', [plainItem]],
      ['pop', anyPop],
      ['ack', fail],
      ['configure', age],
      ['redrive', { where: noFilter, dryRun: false, late: false }],
      ['pop', anyPop],
      ['ack', giveBack],
      ['advance', 40_000],
      ['pop', anyPop],
    ],
    says: /got nothing; __QUEUE_MODE__ should get a\/independent seq 1/,
  },
  'take-long-numbers-for-names': {
    lines: [['push numbers as names', { field: 'queue', number: '1849302847102938475' }]],
    says: /expected 400/,
  },
  'round-long-numbers': {
    lines: [
      ['push', [{ ...plainItem, payload: '{"n":#,"id":1849302847102938475}' }]],
      ['pop', anyPop],
    ],
    says: /the payload .* was returned as/,
  },
  'retain-under-a-pop': {
    lines: [
      ['push', [plainItem, plainItem]],
      ['subscribe', { place: { queue: 'a', group: '__QUEUE_MODE__' }, from: 'all' }],
      ['pop while retaining', { pop: anyPop, place: 'pop-leased', number: 0, ages: true }],
    ],
    says: /retention removed a\/independent 3 4; it may remove only below 3/,
  },
  'grow-the-first-delay': {
    lines: [
      ['configure', { queue: 'a', options: { retryBackoff: growing } }],
      ['push', [plainItem]],
      ['pop', anyPop],
      ['ack', { ...fail, ending: { status: 'failed' } }],
      ['advance', 1_000],
      ['pop', anyPop],
    ],
    says: /got nothing; __QUEUE_MODE__ should get a\/independent seq 1/,
  },
  'keep-moved-letters': {
    lines: [
      ['configure', { queue: 'a', options: { deadLetterTo: 'c' } }],
      ['push', [plainItem]],
      ['pop', anyPop],
      ['ack', fail],
    ],
    says: /the tables have in addition:\s+dead .*a\/.* __QUEUE_MODE__ 1/,
  },
  'refill-the-bucket': {
    lines: [
      ['configure', { queue: 'a', options: { ordering: 'none', rate } }],
      ['push', [plainItem, plainItem, plainItem]],
      ['pop', { ...anyPop, batch: 1 }],
      ['pop', anyPop],
      ['pop', anyPop],
    ],
    says: /at most \d are allowed/,
  },
  'leave-a-full-lane-closed': {
    lines: [
      ['configure', { queue: 'a', options: { ordering: 'none', maxInFlightPerPartition: 1 } }],
      ['push', [plainItem, plainItem]],
      ['pop', anyPop],
      ['ack', { ...fail, ending: { status: 'completed' } }],
      ['pop', anyPop],
    ],
    says: /got nothing; __QUEUE_MODE__ should get a\/Default seq 2/,
  },
  'replace-what-was-delivered': {
    lines: [
      ['push unique', plainUnique],
      ['pop', anyPop],
      ['ack', { ...fail, ending: { status: 'failed' } }],
      ['push unique', { ...plainUnique, onConflict: 'replace' }],
    ],
    says: /the status is replaced instead of stored/,
  },
  'keep-the-keys-of-purged-messages': {
    lines: [
      ['push unique', { ...plainUnique, windowMs: 60_000 }],
      ['purge', { queue: 'a' }],
      ['push unique', plainUnique],
    ],
    says: /the status is duplicate instead of stored/,
  },
  'count-rows-to-another-lease': {
    lines: [
      ['push', twoPartitions],
      ['pop', anyPop],
    ],
    says: /should get the first of|leased twice|was returned with/,
  },
}

const awaitsRetry: readonly Line[] = [
  ['push', [plainItem]],
  ['pop', anyPop],
  ['ack', fail],
  ['seek', seekBack],
  ['pop', anyPop],
  ['configure', age],
  ['ack', { ...giveBack, ending: { status: 'retry', delayMs: 60_000 } }],
  ['advance', 40_000],
]
const redriveAll: Line = ['redrive', { where: noFilter, dryRun: false, late: false }]

const correct: Readonly<Record<string, readonly Line[]>> = {
  'a redriven message whose old retry was dropped is due at once': [
    ...awaitsRetry,
    ['pop', anyPop],
    redriveAll,
    ['pop', anyPop],
  ],
  'a redriven message whose old retry is still there waits for it': [
    ...awaitsRetry,
    redriveAll,
    ['pop', anyPop],
    ['advance', 40_000],
    ['pop', anyPop],
  ],
  'retention goes past a released message that has expired': [
    ['push', [expiring, expiring]],
    ['push', [plainItem, plainItem]],
    ['pop', { ...anyPop, batch: 2 }],
    ['release', latest],
    ['advance', 3_700_000],
    ['pop', anyPop],
    ['retain', { worksOff: 'completed', afterMs: 90_000_000 }],
  ],
  'dead letters go through a chain of queues, with their headers': [
    ['configure', { queue: 'b', options: { deadLetterTo: 'c', retryLimit: 0 } }],
    ['configure', { queue: 'a', options: { deadLetterTo: 'b', retryLimit: 0 } }],
    ['configure', { queue: 'b', options: { deadLetterTo: 'a' } }],
    ['push', [{ ...plainItem, headers: '{"h":12345678901234567890}' }, plainItem]],
    ['pop', anyPop],
    ['ack', fail],
    ['advance', 301_000],
    ['pop', { ...anyPop, from: 'b' }],
    ['ack', { ...fail, ending: { status: 'failed', code: 'E1' } }],
    ['advance', 301_000],
    ['pop', { ...anyPop, from: 'c' }],
  ],
}

function steps(lines: readonly Line[]) {
  return lines.map(([name, args]) => {
    const found = verbs.find((verb) => verb.name === name)
    if (found === undefined) throw new RangeError(`no verb "${name}"`)
    return found.stepWith(args)
  })
}

test('the product passes every sequence', async (t) => {
  t.setTimeout(120_000)
  const product = await startProduct(t)
  const shown = Object.entries(shows).map(([name, { lines }]) => [name, lines] as const)
  for (const [i, [name, lines]] of [...shown, ...Object.entries(correct)].entries()) {
    await t.resolves(runSequence(product, i, steps(lines)), name)
  }
})

for (const { name, does } of modelBugs) {
  test(`${name}: ${does}`, async (t) => {
    t.setTimeout(120_000)
    const shown = shows[name]
    if (shown === undefined) throw new Error('no sequence reveals this bug')
    const product = await startProduct(t, modelBug(name))
    const ran = await runSequence(product, 1, steps(shown.lines)).catch((error: Error) => error)
    t.type(ran, Mismatch)
    t.match((ran as Error).message, shown.says)
  })
}
