// One of the processes among which `run.ts` divides its tasks: it takes one, does it, and answers.
import { type Figures, measure, measureWakes, type WakeFigures } from './figures.ts'
import { Simulation } from './simulation.ts'

export interface SeedTask {
  readonly kind: 'seed' | 'figures'
  readonly seed: number
  readonly nodeCount: number
  readonly isSigned: boolean
}

export type SeedAnswer = SeedResult | FiguresResult

export interface SeedResult {
  readonly kind: 'seed'
  readonly seed: number
  readonly broken: readonly string[]
  readonly datagrams: number
  readonly foundBy: { readonly hint: number; readonly loss: number; readonly fallback: number }
}

export interface FiguresResult {
  readonly kind: 'figures'
  readonly figures: Figures
  readonly wakes: readonly (WakeFigures & { readonly loss: number })[]
}

const wakesPerLoss = 2_000

/** A thousand nodes send half a million datagrams in a second. So their runs are short: all join, some are cut off or
 * restart, the whole is mended. Every twentieth lasts until nodes were given up and interests withdrawn, and then
 * until the rarest greeting, one in 15 s, has come. */
const large = { nodesMin: 200, longEvery: 20 }
const short = { faultsMs: 2_000, faultGapMs: [300, 900], healingMs: 5_000 } as const
const long = { faultsMs: 24_000, healingMs: 18_000 }

process.on('message', (task: SeedTask) => {
  process.send?.(task.kind === 'seed' ? runSeed(task) : takeFigures(task))
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

function takeFigures({ seed, nodeCount }: SeedTask): FiguresResult {
  const wakes = [0, 0.01, 0.3].map((loss) => {
    return { loss, ...measureWakes(loss, seed, wakesPerLoss) }
  })
  return { kind: 'figures', figures: measure(nodeCount, seed), wakes }
}
