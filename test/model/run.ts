// Draws sequences of verbs, runs each against product and model, and shrinks one that fails.
import fc from 'fast-check'
import { compare, wipe } from './compare.ts'
import { drain } from './drain.ts'
import type { Product } from './product.ts'
import type { Scene, Step } from './verb.ts'
import { sequences, verbs } from './verbs/verbs.ts'
import { World } from './world.ts'

export interface RunOptions {
  readonly product: Product
  readonly ms: number
  readonly seed: number
  readonly path?: string | undefined
  readonly say: (line: string) => void
}

export interface RunResult {
  readonly ok: boolean
  readonly sequences: number
  readonly commands: number
}

const lengthMax = 100
const compareEvery = 8

interface Tally {
  drawn: number
  done: number
  refused: number
}

export async function runModel({ product, ms, seed, path, say }: RunOptions): Promise<RunResult> {
  const tallies = new Map(verbs.map(({ name }) => [name, { drawn: 0, done: 0, refused: 0 }]))
  const begunMs = performance.now()
  let ran = 0
  let failure: { lines: readonly string[]; error: Error } | undefined
  let failedAfterMs: number | undefined
  const property = fc.asyncProperty(sequences(lengthMax), async (steps) => {
    ran += 1
    const lines: string[] = []
    try {
      // What is shrunk is no longer drawn: it is not counted.
      await runSequence(product, ran, steps, failure === undefined ? tallies : undefined, lines)
    } catch (error) {
      failure = { lines, error: error as Error }
      if (failedAfterMs === undefined) {
        failedAfterMs = performance.now() - begunMs
        say(
          `differs after ${Math.round(failedAfterMs / 1_000)} s, shrinking: ${failure.error.message}`,
        )
      }
      throw error
    }
  })
  const result = await fc.check(property, {
    seed,
    ...(path === undefined ? {} : { path }),
    // Its bias is to short sequences and small numbers.
    unbiased: true,
    numRuns: 1_000_000_000,
    interruptAfterTimeLimit: ms,
  })
  const commands = [...tallies.values()].reduce((sum, { drawn }) => sum + drawn, 0)
  const minutes = (failedAfterMs ?? performance.now() - begunMs) / 60_000
  for (const line of table(tallies)) say(line)
  const rate = Math.round(commands / minutes)
  say(`${ran} sequences, ${commands} commands, ${rate} a minute, seed ${result.seed}`)
  if (result.counterexample === null || failure === undefined)
    return { ok: true, sequences: ran, commands }
  // The last that failed is the smallest that was found.
  const seconds = Math.round((failedAfterMs ?? 0) / 1_000)
  say(
    `FAILED after ${result.numRuns} sequences and ${seconds} s, shrunk ${result.numShrinks} times:`,
  )
  for (const [i, line] of failure.lines.entries()) say(`  ${i + 1}. ${line}`)
  say(failure.error.stack ?? String(failure.error))
  say(`replay: npm run model -- --seed ${result.seed} --path ${result.counterexamplePath}`)
  return { ok: false, sequences: ran, commands }
}

/** A sequence has names of its own, and its clock begins where all begin. */
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
