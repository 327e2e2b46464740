// `npm run bench -- sdk [--seconds S] [--warm-up S] [--in-flight N] [--queues unordered,1,100]
// [--against COMMIT [--rounds R]]`: the client end to end. One process pushes single messages with N concurrent
// calls; another handles them with N concurrent handlers. Every message is stored before the response to its
// push, and acknowledged. One node with two workers, embedded PostgreSQL and both processes share this machine.
//
// A number in `--queues` is an ordered queue with that many partitions. With `--against`, the client of this
// checkout and that of COMMIT take turns on the same node (of this checkout), and the ratios are printed.
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { startEmbeddedPostgres } from '@rouse/database'
import { buildCommit } from '../compare/build.ts'
import { median, ratioOf } from '../compare/ratio.ts'
import { familyCpuSeconds } from '../support/family-cpu.ts'
import { percentiles } from '../support/figures.ts'
import { startNode } from '../support/node.ts'
import type { SdkFigures, SdkJob } from './load.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    'warm-up': { type: 'string', default: '3' },
    'in-flight': { type: 'string', default: '64' },
    queues: { type: 'string', default: 'unordered,1,100' },
    against: { type: 'string' },
    rounds: { type: 'string', default: '4' },
  },
})

/** CPU in microseconds per message. */
interface Run {
  readonly perSecond: number
  readonly clients: number
  readonly total: number
}

const other = flags.against === undefined ? undefined : await buildCommit(root, flags.against)
const server = await startEmbeddedPostgres({
  settings: { shared_buffers: '512MB', max_wal_size: '4GB' },
})
const node = await startNode(server.url)
try {
  for (const queue of flags.queues.split(',')) {
    if (other === undefined) await endToEnd(queue, root)
    else await compare(queue, other.root)
  }
} finally {
  await node.stop()
  await server.stop()
  await other?.remove()
}

async function compare(queue: string, otherRoot: string): Promise<void> {
  const [ours, theirs]: [Run[], Run[]] = [[], []]
  for (let i = 0; i < Number(flags.rounds); i += 1) {
    const turns: [string, Run[]][] = [
      [root, ours],
      [otherRoot, theirs],
    ]
    for (const [checkout, runs] of i % 2 === 0 ? turns : turns.reverse()) {
      console.log(checkout === root ? 'this checkout' : flags.against)
      runs.push(await endToEnd(queue, checkout))
    }
  }
  const ratioBy = (value: (run: Run) => number): string => {
    const rounds = (runs: readonly Run[]) =>
      runs.map((run) => ({ cpuMicros: value(run), perSecond: run.perSecond }))
    const { ratio, spread } = ratioOf(rounds(ours), rounds(theirs))
    return `${ratio.toFixed(2)} ± ${spread.toFixed(2)}`
  }
  const clients = (runs: readonly Run[]): string =>
    `${median(runs.map((run) => run.clients)).toFixed(0)} µs`
  console.log(
    `${queue}: messages a second × ${ratioBy(({ perSecond }) => perSecond)}, ` +
      `CPU a message × ${ratioBy(({ total }) => total)}, ` +
      `CPU of both clients × ${ratioBy((run) => run.clients)} (${clients(ours)}, was ${clients(theirs)})\n`,
  )
}

async function endToEnd(queue: string, checkout: string): Promise<Run> {
  const load = {
    client: pathToFileURL(`${checkout}/packages/client/dist/index.js`).href,
    url: node.url,
    queue: randomUUID(),
    inFlight: Number(flags['in-flight']),
    isOrdered: queue !== 'unordered',
    partitions: queue === 'unordered' ? 1 : Number(queue),
    seconds: Number(flags.seconds),
    warmUpSeconds: Number(flags['warm-up']),
  }
  const consumer = startLoad({ kind: 'consume', ...load })
  const producer = startLoad({ kind: 'produce', ...load })
  await Promise.all([once(consumer, 'message'), once(producer, 'message')])
  const before = { node: familyCpuSeconds(node.pid), postgres: familyCpuSeconds(server.pid) }
  const begun = performance.now()
  producer.send('go')
  const pushed = await finished(producer)
  const consumed = finished(consumer)
  consumer.send(pushed.messages)
  const handled = await consumed
  const seconds = (performance.now() - begun) / 1000
  const micros = {
    producer: (pushed.cpuSeconds * 1e6) / handled.messages,
    consumer: (handled.cpuSeconds * 1e6) / handled.messages,
    node: ((familyCpuSeconds(node.pid) - before.node) * 1e6) / handled.messages,
    PostgreSQL: ((familyCpuSeconds(server.pid) - before.postgres) * 1e6) / handled.messages,
  }
  const total = Object.values(micros).reduce((a, b) => a + b)
  const perSecond = handled.messages / seconds
  const parts = Object.entries(micros).map(([name, value]) => `${name} ${value.toFixed(0)} µs`)
  const perRequest = Object.entries({ ...pushed.requests, ...handled.requests }).map(
    ([path, count]) => `${path} ${(handled.messages / count).toFixed(0)}`,
  )
  console.log(
    `${queue === 'unordered' ? queue : `${queue} partition(s)`}, ${load.inFlight} in flight: ` +
      `${Math.round(perSecond).toLocaleString('en')} msg/s end to end, ` +
      `${handled.messages.toLocaleString('en')} messages, each handled once\n` +
      `  CPU a message: ${total.toFixed(0)} µs (${parts.join(', ')})\n` +
      `  messages a request: ${perRequest.join(', ')}\n` +
      `  push: ${percentiles(pushed.latenciesMs)}\n  push to handler: ${percentiles(handled.latenciesMs)}`,
  )
  return { perSecond, clients: micros.producer + micros.consumer, total }
}

function startLoad(job: SdkJob): ChildProcess {
  return fork(fileURLToPath(new URL('./load.ts', import.meta.url)), [JSON.stringify(job)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
}

async function finished(child: ChildProcess): Promise<SdkFigures> {
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  const [code] = (await once(child, 'close')) as [number]
  if (code !== 0) throw new Error(`a load process ended with ${code}`)
  return JSON.parse(text) as SdkFigures
}
