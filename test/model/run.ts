// Generates sequences of verbs, runs each against product and model, and shrinks one that fails.
import fc from 'fast-check'
import { compare, wipe } from './compare.ts'
import { drain } from './drain.ts'
import type { Product } from './product.ts'
import { shrink } from './shrink.ts'
import { type Scene, type Step, settleMoved } from './verb.ts'
import { sequences, verbs } from './verbs/verbs.ts'
import { World } from './world.ts'

export interface RunOptions {
  readonly product: Product
  readonly ms: number
  readonly seed: number
  /** If set, runs only this sequence, and only its steps with these indexes. */
  readonly path?: string | undefined
  readonly keep?: readonly number[] | undefined
  /** The seeded bug in the product, for the replay command. */
  readonly bug?: string | undefined
  readonly say: (line: string) => void
}

export interface RunResult {
  readonly ok: boolean
  readonly sequences: number
  readonly commands: number
}

const lengthMax = 100
const compareEvery = 8
const shrinkMsMax = 120_000

interface Tally {
  drawn: number
  done: number
  refused: number
}

interface Failure {
  readonly error: Error
  readonly lines: readonly string[]
  readonly steps: readonly Step[]
}

export async function runModel(options: RunOptions): Promise<RunResult> {
  const { product, ms, seed, path, keep, bug, say } = options
  const tallies = new Map(verbs.map(({ name }) => [name, { drawn: 0, done: 0, refused: 0 }]))
  const begunMs = performance.now()
  let ran = 0
  let failure: Failure | undefined
  let drawn: readonly Step[] = []
  let running: Promise<Failure | undefined> | undefined
  const property = fc.asyncProperty(sequences(lengthMax), async (all) => {
    ran += 1
    drawn = all
    const steps = keep === undefined ? all : all.filter((_, i) => keep.includes(i))
    running = failureOf(product, ran, steps, tallies)
    failure = await running
    if (failure !== undefined) throw failure.error
  })
  const result = await fc.check(property, {
    seed,
    ...(path === undefined ? {} : { path }),
    // By default, fast-check prefers short sequences and small numbers.
    unbiased: true,
    numRuns: path === undefined ? 1_000_000_000 : 1,
    interruptAfterTimeLimit: ms,
    endOnFailure: true,
  })
  // When the time is over, fast-check does not wait for the last sequence.
  failure = await running
  const tookMs = performance.now() - begunMs
  const commands = [...tallies.values()].reduce((sum, one) => sum + one.drawn, 0)
  for (const line of table(tallies)) say(line)
  const rate = Math.round((commands / tookMs) * 60_000)
  say(`${ran} sequences, ${commands} commands, ${rate} a minute, seed ${result.seed}`)
  if (failure === undefined) return { ok: true, sequences: ran, commands }
  say(`FAILED after ${ran} sequences and ${Math.round(tookMs / 1_000)} s: ${failure.error.message}`)
  const number = path === undefined ? ran - 1 : Number(path)
  const least = await shortened(product, ran, drawn, failure)
  for (const [i, line] of least.lines.entries()) say(`  ${i + 1}. ${line}`)
  say(least.error.stack ?? String(least.error))
  const kept = least.steps.map((step) => drawn.indexOf(step)).join(',')
  const seeded = bug === undefined ? '' : ` --bug ${bug}`
  say(`replay: npm run model --${seeded} --seed ${result.seed} --path ${number} --keep ${kept}`)
  return { ok: false, sequences: ran, commands }
}

async function shortened(
  product: Product,
  ran: number,
  drawn: readonly Step[],
  first: Failure,
): Promise<Failure> {
  let least = first
  let number = ran
  const endMs = performance.now() + shrinkMsMax
  await shrink(
    first.steps.map((step) => drawn.indexOf(step)),
    async (kept) => {
      number += 1
      const found = await failureOf(
        product,
        number,
        kept.map((i) => drawn[i] as Step),
      )
      least = found ?? least
      return found?.steps.length
    },
    () => performance.now() > endMs,
  )
  return least
}

/** Resolves with the failure and the steps up to the one that failed; undefined if all passed. */
async function failureOf(
  product: Product,
  number: number,
  steps: readonly Step[],
  tallies?: ReadonlyMap<string, Tally>,
): Promise<Failure | undefined> {
  const lines: string[] = []
  let begun = 0
  const counted = steps.map((step) => ({
    ...step,
    run: (scene: Scene) => {
      begun += 1
      return step.run(scene)
    },
  }))
  try {
    await runSequence(product, number, counted, tallies, lines)
    return undefined
  } catch (error) {
    return { error: error as Error, lines, steps: steps.slice(0, begun) }
  }
}

/** Each sequence uses its own names. All sequences start at the same clock time. */
export async function runSequence(
  product: Product,
  number: number,
  steps: readonly Step[],
  tallies?: ReadonlyMap<string, Tally>,
  lines: string[] = [],
): Promise<void> {
  const world = new World(Date.UTC(2027, 0, 31, 12, 30))
  const scene: Scene = { world, product, prefix: `m${number}-`, lines }
  let doing = ''
  await product.setClock(world.now)
  try {
    for (const [i, { verb, args, run }] of steps.entries()) {
      const tally = tallies?.get(verb)
      if (tally !== undefined) tally.drawn += 1
      doing = `${verb} ${JSON.stringify(args)}`
      const deed = await run(scene)
      await settleMoved(scene)
      if (deed !== undefined) lines.push(deed.did)
      if (deed !== undefined && tally !== undefined) tally[deed.effect] += 1
      doing = '(compare)'
      if (i % compareEvery === compareEvery - 1) await compare(scene)
    }
    doing = '(drain)'
    await drain(scene)
  } catch (error) {
    lines.push(doing)
    for (const own of world.transactions) own.end()
    await wipe(scene)
    throw error
  }
}

function table(tallies: ReadonlyMap<string, Tally>): string[] {
  const cells = (name: string, ...figures: (string | number)[]) =>
    name.padEnd(24) + figures.map((figure) => String(figure).padStart(9)).join('')
  return [
    cells('verb', 'drawn', 'done', 'refused', 'nothing'),
    ...[...tallies].map(([name, { drawn, done, refused }]) =>
      cells(name, drawn, done, refused, drawn - done - refused),
    ),
  ]
}
