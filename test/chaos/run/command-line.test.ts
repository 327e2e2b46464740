import { seededRandom } from '@rouse/testkit'
import { test } from 'tap'
import { gateFaults, nemeses } from '../nemeses/nemeses.ts'
import { type Command, readCommand, UsageError } from './command-line.ts'
import { schedule } from './schedule.ts'

const read = (...args: string[]): Command => readCommand(args, () => 99)

test('an unknown name or an invalid value is reported in one line', async (t) => {
  for (const [args, message] of [
    [['--fault', 'x'], /--fault/],
    [['--faults', 'worker-kill,earthquake'], /unknown fault earthquake; known: worker-kill/],
    [['--workloads', 'x'], /unknown workload x; known: plain/],
    [['--bug', 'x'], /unknown bug x/],
    [['--standby', 'maybe'], /--standby must be one of sync, async, none/],
    [['--postgres', '14'], /--postgres must be one of 15, 16, 17, 18/],
    [['--seconds', '0'], /--seconds must be a number from 1/],
    [['--messages', 'many'], /--messages must be a number from 1/],
    [['--gate', '--soak'], /--gate and --soak cannot be combined/],
  ] as const) {
    const complaint = complaintOf(args)
    t.match(complaint, message)
    t.notMatch(complaint, /\n/)
  }
})

test('a run prints the command that repeats it, with its seed', async (t) => {
  t.match(read('--faults', 'none', '--rate', '2'), {
    kind: 'run',
    run: { seed: 99, rate: 2, faults: { faults: [] } },
    replay: 'npm run chaos -- --faults none --rate 2 --seed 99',
  })
  t.match(read('--workloads', 'one-partition', '--messages', '1000'), {
    run: { messagesMin: { 'one-partition': 1_000 } },
  })
  t.match(read('--postgres', '18'), {
    run: { postgresMajor: 18 },
    replay: 'npm run chaos -- --postgres 18 --seed 99',
  })
  t.match(read('--seed', '7', '--gate'), { replay: 'npm run chaos -- --gate --seed 7' })
})

test('the gate injects its faults once, and --all injects every fault', async (t) => {
  const faultsOf = (command: Command): readonly string[] =>
    command.kind === 'run' ? command.run.faults.faults : []
  t.same(faultsOf(read('--gate')), gateFaults)
  t.same(
    faultsOf(read('--all')),
    nemeses.map(({ name }) => name),
  )
  t.match(read('--soak'), { run: { seconds: 3_600, faults: { eachOnce: false } } })
  t.match(read('--soak', '--seconds', '1860'), { run: { seconds: 1_860 } })
  t.match(read('--control'), { kind: 'control', run: { durable: false, standby: 'none' } })
})

test('the schedule depends on the seed only', async (t) => {
  const options = {
    faults: ['a', 'b', 'c'],
    eachOnce: false,
    gapSeconds: [4, 8],
    faultSeconds: [3, 7],
  } as const
  const first = (seed: number): object[] => {
    const steps = schedule(options, seededRandom(seed))
    return Array.from({ length: 20 }, () => steps.next().value as object)
  }
  t.same(first(7), first(7))
  t.not(JSON.stringify(first(7)), JSON.stringify(first(8)))
  const once = [...schedule({ ...options, eachOnce: true }, seededRandom(7))]
  t.same(
    once.map(({ fault }) => fault),
    options.faults,
  )
})

/** The message of the UsageError. Any other error would be printed with its stack. */
function complaintOf(args: readonly string[]): string | undefined {
  try {
    read(...args)
    return undefined
  } catch (error) {
    return error instanceof UsageError ? error.message : undefined
  }
}
