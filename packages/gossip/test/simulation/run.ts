// `npm run simulate -- --nodes 10 --seeds 1000 --seed 1` runs so many seeds, from the given one on. A seed
// that breaks a rule is printed with the command that runs it again; without any, figures follow.
import { parseArgs } from 'node:util'
import { measure, measureWakes } from './figures.ts'
import { Simulation } from './simulation.ts'

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '10' },
    seeds: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    signed: { type: 'boolean', default: false },
    figures: { type: 'boolean', default: true },
  },
  allowNegative: true,
})
const nodeCount = Number(values.nodes)
const first = Number(values.seed)
const seedCount = Number(values.seeds)
const isLarge = nodeCount > 200
/** Ten thousand seeds take most of an hour. */
const tellEveryMs = 60_000

let failed = 0
let datagrams = 0
let toldAt = performance.now()
const foundBy = { hint: 0, loss: 0, fallback: 0 }
for (let seed = first; seed < first + seedCount; seed += 1) {
  const simulation = new Simulation({
    seed,
    nodeCount,
    isSigned: values.signed,
    ...(nodeCount > 20 ? { checkedMax: 10 } : {}),
    // A thousand nodes send half a million datagrams in a second.
    ...(isLarge ? { faultsMs: 3_000, healingMs: 6_000 } : {}),
  })
  const broken = simulation.run()
  datagrams += simulation.network.datagrams
  for (const how of ['hint', 'loss', 'fallback'] as const)
    foundBy[how] += simulation.store.foundBy[how]
  if (broken.length > 0) {
    failed += 1
    for (const rule of broken) print(`seed ${seed} ${rule}`)
    print(`  again: npm run simulate -- --nodes ${nodeCount} --seeds 1 --seed ${seed}`)
  }
  if (performance.now() - toldAt < tellEveryMs) continue
  toldAt = performance.now()
  print(`${seed - first + 1} of ${seedCount} seeds, ${failed} failed so far`)
}
print(`${seedCount} seeds of ${nodeCount} nodes: ${failed} failed; ${datagrams} datagrams`)
print(
  `messages found by hint ${foundBy.hint}, by noticed loss ${foundBy.loss}, by fallback ${foundBy.fallback}`,
)
if (failed === 0 && values.figures) printFigures()
process.exitCode = failed === 0 ? 0 : 1

function printFigures(): void {
  for (const [name, value] of Object.entries(measure(nodeCount, first)))
    print(`${name} ${value.toFixed(1)}`)
  for (const loss of [0, 0.01, 0.3]) {
    const { within10Ms, p50Ms, maxMs } = measureWakes(loss, first, 2_000)
    const share = (within10Ms * 100).toFixed(2)
    print(
      `loss ${loss * 100} %: woken within 10 ms ${share} %, p50 ${p50Ms.toFixed(2)} ms, max ${maxMs.toFixed(0)} ms`,
    )
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
