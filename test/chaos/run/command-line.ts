// Parses the arguments of `npm run chaos -- …`.
import { parseArgs } from 'node:util'
import { postgresMajors, postgresMissing } from '@rouse/testkit'
import { bugs } from '../bugs/bugs.ts'
import { gateFaults, nemeses } from '../nemeses/nemeses.ts'
import type { Workload } from '../workloads/workload.ts'
import { workloads } from '../workloads/workloads.ts'
import type { RunOptions } from './make-history.ts'

export type ChaosRun = Omit<RunOptions, 'print' | 'progress'>

export type Command =
  | {
      readonly kind: 'run'
      readonly run: ChaosRun
      readonly keep: boolean
      readonly replay: string
    }
  /**
   * A power loss on a database that does not flush. It must lose data; otherwise the power-loss test proves
   * nothing.
   */
  | {
      readonly kind: 'control'
      readonly run: ChaosRun
      readonly keep: boolean
      readonly replay: string
    }
  /** The product with seeded bugs: all of them in turn, or one. */
  | {
      readonly kind: 'bugs'
      readonly seed: number
      readonly name: string | undefined
      readonly keep: boolean
    }

/** An unknown name or an invalid value; printed in one line without a stack. */
export class UsageError extends Error {}

const modes = ['gate', 'all', 'soak', 'control', 'bugs'] as const
const standbys = ['sync', 'async', 'none'] as const
const hourSeconds = 3_600
/**
 * The time for the faults of the gate. They take 80 s on a quiet machine and twice that beside other tests.
 */
const gateSeconds = 200
/**
 * The number of messages that the gate pushes to one partition. It is so large that a queue that reads by
 * position would miss late commits and lose messages.
 */
const gateMessages = 50_000

const options = {
  seconds: { type: 'string' },
  seed: { type: 'string' },
  faults: { type: 'string' },
  workloads: { type: 'string' },
  standby: { type: 'string' },
  postgres: { type: 'string' },
  rate: { type: 'string' },
  messages: { type: 'string' },
  keep: { type: 'boolean' },
  gate: { type: 'boolean' },
  all: { type: 'boolean' },
  soak: { type: 'boolean' },
  control: { type: 'boolean' },
  bugs: { type: 'boolean' },
  bug: { type: 'string' },
} as const

type Values = ReturnType<typeof parse>

export function readCommand(args: readonly string[], newSeed: () => number): Command {
  const values = parse(args)
  const seed = values.seed === undefined ? newSeed() : number('seed', values.seed, 0, 2 ** 32 - 1)
  const asked = modes.filter((mode) => values[mode] === true)
  if (asked.length > 1) throw new UsageError(`--${asked.join(' and --')} cannot be combined`)
  const keep = values.keep === true
  if (values.bugs === true || values.bug !== undefined) {
    const [bug] = chosen('bug', values.bug, bugs)
    return { kind: 'bugs', seed, name: values.bug === undefined ? undefined : bug?.name, keep }
  }
  const replay = `npm run chaos -- ${[...withoutSeed(args), '--seed', seed].join(' ')}`
  const run = { ...baseRun(values, seed), ...modeOf(values) }
  return { kind: values.control === true ? 'control' : 'run', run, keep, replay }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: false }).values
  } catch (error) {
    throw new UsageError((error as Error).message.split('\n')[0])
  }
}

function baseRun(values: Values, seed: number): ChaosRun {
  const chosenWorkloads = chosen('workload', values.workloads, workloads)
  return {
    seed,
    workloads: chosenWorkloads,
    messagesMin: messagesMin(values, chosenWorkloads),
    rate: rateOf(values),
    standby: oneOf('standby', values.standby ?? 'sync', standbys),
    postgresMajor: majorOf(values),
    seconds: values.seconds === undefined ? 60 : number('seconds', values.seconds, 1, 100_000),
    warmUpSeconds: 5,
    faults: {
      faults: faultNames(
        values,
        nemeses.map(({ name }) => name),
      ),
      eachOnce: false,
      gapSeconds: [4, 8],
      faultSeconds: [3, 7],
    },
    // A wake-up takes milliseconds; on two cores with twenty busy processes it occasionally takes a second.
    wakeMsMax: 5_000,
    drainSecondsMax: 600,
  }
}

function modeOf(values: Values): Partial<ChaosRun> {
  const all = nemeses.map(({ name }) => name)
  if (values.gate === true) {
    const faults = faultNames(values, gateFaults)
    return {
      standby: oneOf('standby', values.standby ?? 'none', standbys),
      // None of the gate's faults needs a faulty disk, and not every machine permits one.
      faultyDisk: false,
      faults: { faults, eachOnce: true, gapSeconds: [1, 2], faultSeconds: [3, 4] },
      seconds: gateSeconds,
      // The rates are for two cores that run other tests, too.
      ...mostlyBatches({ others: 0.2, onePartition: 6 }, values),
      messagesMin: { 'one-partition': gateMessages },
      // The limit is for a machine that runs all tests at once.
      wakeMsMax: 60_000,
    }
  }
  if (values.all === true) {
    const faults = faultNames(values, all)
    const eachOnce = { eachOnce: true, gapSeconds: [4, 6], faultSeconds: [6, 8] } as const
    return { faults: { faults, ...eachOnce }, seconds: Number.POSITIVE_INFINITY }
  }
  if (values.soak === true) {
    const seconds = values.seconds === undefined ? { seconds: hourSeconds } : {}
    return { ...seconds, ...mostlyBatches({ others: 0.4, onePartition: 4 }, values) }
  }
  if (values.control === true) {
    const faults = { faults: ['power-loss'], eachOnce: true } as const
    const soon = { gapSeconds: [8, 10], faultSeconds: [3, 4] } as const
    return { durable: false, standby: 'none', faults: { ...faults, ...soon } }
  }
  return {}
}

/**
 * Raises the rate of the workload that pushes many messages per request, because such messages are cheap, and
 * lowers the rate of the others.
 */
function mostlyBatches(
  { others, onePartition }: { readonly others: number; readonly onePartition: number },
  values: Values,
): Pick<ChaosRun, 'rate' | 'rates'> {
  const rate = rateOf(values)
  return { rate: rate * others, rates: { 'one-partition': rate * onePartition, plain: rate } }
}

function majorOf({ postgres }: Values): number | undefined {
  if (postgres === undefined) return undefined
  const major = Number(oneOf('postgres', postgres, postgresMajors.map(String)))
  const missing = postgresMissing(major)
  if (missing !== false) throw new UsageError(missing)
  return major
}

function messagesMin(
  { messages }: Values,
  from: readonly Workload[],
): Readonly<Record<string, number>> {
  if (messages === undefined) return {}
  const count = number('messages', messages, 1, 1e9)
  return Object.fromEntries(from.map(({ name }) => [name, count]))
}

function rateOf({ rate }: Values): number {
  return rate === undefined ? 1 : number('rate', rate, 0.01, 100)
}

function faultNames({ faults }: Values, all: readonly string[]): readonly string[] {
  if (faults === 'none') return []
  return chosen(
    'fault',
    faults,
    nemeses.filter(({ name }) => faults !== undefined || all.includes(name)),
  ).map(({ name }) => name)
}

function chosen<Item extends { readonly name: string }>(
  what: string,
  names: string | undefined,
  items: readonly Item[],
): readonly Item[] {
  if (names === undefined) return items
  return names.split(',').map((name) => {
    const item = items.find((one) => one.name === name)
    if (item !== undefined) return item
    throw new UsageError(
      `unknown ${what} ${name}; known: ${items.map((one) => one.name).join(', ')}`,
    )
  })
}

function number(flag: string, text: string, min: number, max: number): number {
  const value = Number(text)
  if (text.trim() !== '' && value >= min && value <= max) return value
  throw new UsageError(`--${flag} must be a number from ${min} to ${max}`)
}

function oneOf<Choice extends string>(
  flag: string,
  text: string,
  choices: readonly Choice[],
): Choice {
  const choice = choices.find((one) => one === text)
  if (choice !== undefined) return choice
  throw new UsageError(`--${flag} must be one of ${choices.join(', ')}`)
}

function withoutSeed(args: readonly string[]): string[] {
  return args.filter((arg, i) => !arg.startsWith('--seed') && args[i - 1] !== '--seed')
}
