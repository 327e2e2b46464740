// Loaded into every process of a node by NODE_OPTIONS. Counts function calls from one SIGUSR2 to the next
// with V8's precise coverage, and the calls from one sidecar file into another with the instrumentation of
// trace-loader.mjs. Each signal writes the counts since the previous one to SHAPE_FOLDER.
import { renameSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { register } from 'node:module'
import { join } from 'node:path'

register('./trace-loader.mjs', import.meta.url)

const handOvers = []
globalThis.rouseShapeEnter = () => {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 3
  const frames = new Error().stack
    .split('\n')
    .map((line) => /packages\/sidecar\/dist\/([^:]+)\.js/.exec(line)?.[1])
  Error.stackTraceLimit = limit
  const [, , callee, caller] = frames
  if (callee !== undefined && caller !== undefined && callee !== caller) {
    handOvers.push(`${caller} -> ${callee}`)
  }
}

const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

let taken = 0
process.on('SIGUSR2', () => {
  session.post('Profiler.takePreciseCoverage', (error, coverage) => {
    if (error) throw error
    const files = coverage.result
      .filter(({ functions }) =>
        functions.some(({ ranges }) => ranges.some(({ count }) => count > 0)),
      )
      .map(({ url }) => url)
    const file = join(process.env.SHAPE_FOLDER, `${process.pid}-${taken}.json`)
    taken += 1
    writeFileSync(`${file}.part`, JSON.stringify({ files, handOvers: handOvers.splice(0) }))
    renameSync(`${file}.part`, file)
  })
})
