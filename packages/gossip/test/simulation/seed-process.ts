// A worker process of `run.ts`: takes a task, runs it, and sends the result.
import { type Measurements, measure, measureWakes, type WakeMeasurements } from './measurements.ts'
import { Simulation } from './simulation.ts'

export interface SeedTask {
  readonly kind: 'seed' | 'measurements'
  readonly seed: number
  readonly nodeCount: number
  readonly isSigned: boolean
}

export type SeedAnswer = SeedResult | MeasurementsResult

export interface SeedResult {
  readonly kind: 'seed'
  readonly seed: number
  readonly broken: readonly string[]
  readonly datagrams: number
  readonly foundBy: { readonly hint: number; readonly loss: number; readonly fallback: number }
}

export interface MeasurementsResult {
  readonly kind: 'measurements'
  readonly measurements: Measurements
  readonly wakes: readonly (WakeMeasurements & {
    readonly loss: number
    readonly spread: 'one' | 'all'
  })[]
}

const wakesPerLoss = 2_000

/**
 * A thousand nodes send half a million datagrams per second, so their runs are short: all join, some are cut
 * off or restart, the network heals. Every twentieth run is long: nodes are declared dead, interests are
 * withdrawn, and the slowest hello interval, 15 s, passes.
 */
const large = { nodesMin: 200, longEvery: 20 }
const short = { faultsMs: 2_000, faultGapMs: [300, 900], healingMs: 5_000 } as const
const long = { faultsMs: 24_000, healingMs: 18_000 }

process.on('message', (task: SeedTask) => {
  process.send?.(task.kind === 'seed' ? runSeed(task) : takeMeasurements(task))
})

function runSeed({ seed, nodeCount, isSigned }: SeedTask): SeedResult {
  const simulation = new Simulation({
    seed,
    nodeCount,
    isSigned,
    ...(nodeCount > 20 ? { checkedMax: 10 } : {}),
    ...(nodeCount > large.nodesMin ? (seed % large.longEvery === 0 ? long : short) : {}),
  })
  const broken = simulation.run()
  const { datagrams } = simulation.network
  return { kind: 'seed', seed, broken, datagrams, foundBy: simulation.store.foundBy }
}

function takeMeasurements({ seed, nodeCount }: SeedTask): MeasurementsResult {
  const wakes = [0, 0.01, 0.3].flatMap((loss) =>
    (['one', 'all'] as const).map((spread) => {
      return { loss, spread, ...measureWakes(loss, seed, wakesPerLoss, spread) }
    }),
  )
  return { kind: 'measurements', measurements: measure(nodeCount, seed), wakes }
}
