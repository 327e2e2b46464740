// `npm run simulate -- --nodes 10 --seeds 1000 --seed 1` runs the seeds 1 to 1,000, and takes measurements.
// `--jobs` is the number of processes. A seed that breaks a rule is printed at once with the command to
// repeat it. The run fails if a seed breaks a rule or the measurements miss a target.
import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import type { MeasurementsResult, SeedAnswer, SeedResult, SeedTask } from './seed-process.ts'
import { missedTargets } from './targets.ts'

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '10' },
    seeds: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    jobs: { type: 'string', default: `${availableParallelism()}` },
    signed: { type: 'boolean', default: false },
    measurements: { type: 'boolean', default: true },
  },
  allowNegative: true,
})
const nodeCount = wholeNumber('nodes', 2)
const seedCount = wholeNumber('seeds', 0)
const firstSeed = wholeNumber('seed', 0)
const jobs = wholeNumber('jobs', 1)
/**
 * The interval of progress lines: ten thousand seeds, or twenty of a thousand nodes, take most of an hour.
 */
const tellEveryMs = 60_000
/**
 * Datagrams in flight live longer than a small young generation: with 16 MB, 1,000 nodes took a tenth longer.
 */
const youngHeapMb = 128

const startedAt = performance.now()
let toldAt = startedAt
const sums = { done: 0, failed: 0, datagrams: 0, hint: 0, loss: 0, fallback: 0 }
let measured: MeasurementsResult | undefined

const tasks = listTasks()
await Promise.all(Array.from({ length: Math.min(jobs, seedCount + 1) }, runTasks))
printSums()
if (measured !== undefined) printMeasurements(measured)

/** The measurements come first: for a thousand nodes they take longer than any seed. */
function* listTasks(): Generator<SeedTask, undefined> {
  const task = { nodeCount, isSigned: values.signed }
  if (values.measurements) yield { ...task, kind: 'measurements', seed: firstSeed }
  for (let seed = firstSeed; seed < firstSeed + seedCount; seed += 1) {
    yield { ...task, kind: 'seed', seed }
  }
}

/** Starts a process, and gives it one task after another. */
function runTasks(): Promise<void> {
  const child = fork(new URL('./seed-process.ts', import.meta.url), {
    execArgv: [...process.execArgv, `--max-semi-space-size=${youngHeapMb}`],
  })
  return new Promise((resolve, reject) => {
    const giveNext = () => {
      const { value: task } = tasks.next()
      if (task === undefined) child.disconnect()
      else child.send(task)
    }
    child.on('message', (answer: SeedAnswer) => {
      if (answer.kind === 'measurements') measured = answer
      else note(answer)
      giveNext()
    })
    child.on('exit', (code) => {
      if (code === 0) resolve()
      else reject(new Error(`a process of the simulation exited with ${code}`))
    })
    giveNext()
  })
}

function note({ seed, broken, datagrams, foundBy }: SeedResult): void {
  sums.done += 1
  sums.datagrams += datagrams
  for (const how of ['hint', 'loss', 'fallback'] as const) sums[how] += foundBy[how]
  if (broken.length > 0) {
    sums.failed += 1
    process.exitCode = 1
    for (const rule of broken) print(`seed ${seed} ${rule}`)
    print(`  repeat: npm run simulate -- --nodes ${nodeCount} --seeds 1 --seed ${seed}`)
  }
  if (performance.now() - toldAt < tellEveryMs) return
  toldAt = performance.now()
  print(`${sums.done} of ${seedCount} seeds, ${sums.failed} failed so far`)
}

function printSums(): void {
  const minutes = (performance.now() - startedAt) / 60_000
  print(
    `${sums.done} seeds of ${nodeCount} nodes: ${sums.failed} failed; ${sums.datagrams} datagrams, ${minutes.toFixed(1)} minutes`,
  )
  print(
    `messages found by hint ${sums.hint}, by reported loss ${sums.loss}, by fallback ${sums.fallback}`,
  )
}

function printMeasurements(result: MeasurementsResult): void {
  for (const [name, value] of Object.entries(result.measurements))
    print(`${name} ${value.toFixed(1)}`)
  for (const { loss, spread, within10Ms, p50Ms, maxMs } of result.wakes) {
    const share = (within10Ms * 100).toFixed(2)
    print(
      `loss ${loss * 100} %, spread ${spread}: woken within 10 ms ${share} %, p50 ${p50Ms.toFixed(2)} ms, max ${maxMs.toFixed(0)} ms`,
    )
  }
  const missed = missedTargets(nodeCount, result)
  for (const target of missed) print(`missed: ${target}`)
  if (missed.length > 0) process.exitCode = 1
  else print('all targets met')
}

function wholeNumber(name: 'nodes' | 'seeds' | 'seed' | 'jobs', least: number): number {
  const number = Number(values[name])
  if (Number.isSafeInteger(number) && number >= least) return number
  print(`--${name} takes a whole number of at least ${least}, not '${values[name]}'`)
  process.exit(2)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
