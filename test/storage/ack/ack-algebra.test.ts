// Random sequences of calls on one lane, made in PostgreSQL and in the model: every result and the
// state at the end must be the same. A failure prints the seed and the shortest sequence.
import {
  ack,
  deadLetters,
  deleteQueue,
  extend,
  type Lease,
  pop,
  promoteDue,
  reapExpired,
  release,
} from '@rouse/storage'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { LaneModel, type LaneRules, type ModelLease, type Outcome } from '../support/lane-model.ts'
import { demand, openStorage, type Storage, start } from '../support/storage.ts'

type Step =
  | { do: 'push'; count: number }
  | { do: 'pop'; batch: number; lanes: number; leaseMs: number }
  | {
      do: 'end'
      lease: number
      ends: { place: number; outcome: Outcome; delayMs: number | undefined }[]
    }
  | { do: 'finish' | 'release'; lease: number }
  | { do: 'extend'; lease: number; durationMs: number }
  | { do: 'advance'; ms: number }
  | { do: 'maintain' }

const lease = fc.nat({ max: 5 })
const end = fc.record({
  place: fc.nat({ max: 3 }),
  outcome: fc.constantFrom<Outcome>('completed', 'failed', 'failed', 'retry', 'dlq'),
  delayMs: fc.constantFrom(undefined, undefined, 0, 500, 2_000),
})
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('push' as const), count: fc.integer({ min: 1, max: 4 }) }),
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('pop' as const),
      batch: fc.integer({ min: 1, max: 5 }),
      lanes: fc.integer({ min: 1, max: 2 }),
      leaseMs: fc.constantFrom(1_000, 5_000),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      lease,
      ends: fc.array(end, { minLength: 1, maxLength: 4 }),
    }),
  },
  fc.record({ do: fc.constantFrom('finish' as const, 'release' as const), lease }),
  fc.record({ do: fc.constant('extend' as const), lease, durationMs: fc.constantFrom(500, 3_000) }),
  fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1, 499, 1_000, 4_000) }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant('maintain' as const) }) },
)
const steps = fc.array(step, { minLength: 8, maxLength: 30 }).map((some): Step[] => {
  return [{ do: 'push', count: 5 }, { do: 'pop', batch: 3, lanes: 1, leaseMs: 1_000 }, ...some]
})

const runsMin = 10
const limits = { retryLimit: 2, backoffMs: [0, 1_000, 3_000] }
const seed = Number(process.env.ROUSE_TEST_SEED ?? Date.now() % 2 ** 31)

for (const rules of [
  { ordering: 'partition', onFailure: 'hold', ...limits },
  { ordering: 'partition', onFailure: 'skip', ...limits },
  { ordering: 'none', onFailure: 'skip', ...limits },
  { ordering: 'none', onFailure: 'hold', ...limits },
] as const) {
  test(`with ordering ${rules.ordering} and onFailure ${rules.onFailure}, a lane behaves like its model`, async (t) => {
    const storage = await openStorage(t)
    const untilMs = performance.now() + 8_000
    let runs = 0
    const property = fc.asyncProperty(steps, async (sequence) => {
      // Not interrupted by fast-check, which would leave the sequence running when the test has ended.
      if (runs >= runsMin && performance.now() > untilMs) return
      const queue = `q${(runs += 1)}`
      await compare(t, storage, queue, rules, sequence)
    })
    await fc.assert(property, { seed, numRuns: 40, endOnFailure: false })
    t.ok(runs >= runsMin, `seed ${seed}, ${runs} sequences`)
  })
}

async function compare(
  t: Test,
  storage: Storage,
  queue: string,
  rules: LaneRules,
  sequence: readonly Step[],
): Promise<void> {
  const { freezeClock, pool, set } = storage
  const model = new LaneModel(rules)
  await freezeClock(start)
  const { ordering, onFailure, retryLimit, backoffMs } = rules
  await set(queue, { ordering, onFailure, retryLimit, retryBackoffMs: backoffMs })
  const leases: [Lease, ModelLease][] = []
  for (const [at, one] of sequence.entries()) {
    const [real, expected] = await make(storage, queue, model, leases, one)
    equal(real, expected, `step ${at}, ${JSON.stringify(one)}`)
  }
  equal(
    model.places(),
    Array.from({ length: model.head - 1 }, (_, i) => i + 1),
    'the model itself',
  )
  await equalEnd(storage, queue, model)
  await deleteQueue(pool, queue)
  t.pass()
}

/** Makes one call in PostgreSQL and in the model; returns both results. */
async function make(
  { advanceClock, pool, send }: Storage,
  queue: string,
  model: LaneModel,
  leases: [Lease, ModelLease][],
  one: Step,
): Promise<[unknown, unknown]> {
  if (one.do === 'push') {
    model.push(one.count)
    await send(
      queue,
      'p',
      Array.from({ length: one.count }, () => 0),
    )
    return [0, 0]
  }
  if (one.do === 'pop') {
    const demands = [demand({ batch: one.batch, partitions: one.lanes, leaseMs: one.leaseMs })]
    const { leases: came } = await pop(pool, { source: { queue }, group: 'g', demands })
    const expected = model.pop(one.batch, one.leaseMs)
    const [real] = came
    if (real !== undefined && expected !== undefined) leases.push([real, expected])
    return [
      came.map(({ attempt, messages }) => [attempt, messages.map(({ seq }) => seq)]),
      expected === undefined ? [] : [[expected.attempt, expected.seqs]],
    ]
  }
  if (one.do === 'advance') {
    model.now += one.ms
    await advanceClock(one.ms)
    return [0, 0]
  }
  if (one.do === 'maintain') {
    model.maintain()
    await reapExpired(pool)
    await promoteDue(pool)
    return [0, 0]
  }
  const chosen = leases[leases.length === 0 ? 0 : one.lease % leases.length]
  if (chosen === undefined) return [0, 0]
  const [{ leaseId, partitionId }, expected] = chosen
  switch (one.do) {
    case 'end': {
      const ends = one.ends.map(({ place, ...rest }) => {
        return { seq: expected.seqs[place % expected.seqs.length] as number, ...rest }
      })
      const said = ends.map((e) => model.end(expected, e.seq, e.outcome, e.delayMs))
      const { deadLettered, rejected } = await ack(
        pool,
        ends.map(({ seq, outcome, delayMs }) => {
          return { leaseId, message: { partitionId, seq }, status: outcome, delayMs }
        }),
      )
      return [
        [rejected, deadLettered],
        [places(said, 'no'), places(said, 'dead')],
      ]
    }
    case 'finish': {
      const held = [...expected.held]
      const said = held.map((seq) => model.end(expected, seq, 'completed'))
      const { rejected } = await ack(pool, [{ leaseId }])
      return [rejected.length === 0, said.includes('yes')]
    }
    case 'release':
      return [(await release(pool, [leaseId])).released.size === 1, model.release(expected)]
    case 'extend': {
      const [until] = await extend(pool, [{ leaseId, durationMs: one.durationMs }])
      const expectedUntil = model.extend(expected, one.durationMs)
      return [until, expectedUntil === null ? null : expectedUntil + start]
    }
    default:
      return one satisfies never
  }
}

async function equalEnd({ pool, rows }: Storage, queue: string, model: LaneModel): Promise<void> {
  const again = await rows<{ seq: string; attempt: number; alone: boolean }>(
    `select r.seq, r.attempt, r.alone from rouse.redeliveries r join rouse.partitions p on p.id = r.partition_id
     join rouse.queues q on q.id = p.queue_id where q.name = $1 order by r.seq`,
    [queue],
  )
  equal(
    again.map(({ seq, attempt, alone }) => [Number(seq), attempt, alone]),
    [...model.again].map(([seq, { attempt, alone }]) => [seq, attempt, alone]).toSorted(bySeq),
    'the redeliveries',
  )
  const { letters } = await deadLetters(pool, { queue, limit: 1000 })
  const buried = letters.map(({ seq }) => seq)
  equal(
    buried.toSorted((a, b) => a - b),
    model.dead.toSorted((a, b) => a - b),
    'dead letters',
  )
}

function bySeq(a: readonly unknown[], b: readonly unknown[]): number {
  return Number(a[0]) - Number(b[0])
}

function places(said: readonly string[], what: string): number[] {
  return said.flatMap((answer, i) => (answer === what ? [i] : []))
}

/** Throws if the values differ: fast-check then searches for a shorter sequence. */
function equal(real: unknown, expected: unknown, what: string): void {
  const [a, b] = [JSON.stringify(real), JSON.stringify(expected)]
  if (a !== b) throw new Error(`${what}: PostgreSQL says ${a}, the model ${b}`)
}
