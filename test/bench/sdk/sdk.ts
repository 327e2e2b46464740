// `npm run bench -- sdk [--seconds S] [--warm-up S] [--in-flight N] [--partitions 1,100]`: the client end to
// end. One process pushes single messages with N concurrent calls; another handles them with N concurrent
// handlers. Every message is stored before the response to its push, and acknowledged. One node with two
// workers, embedded PostgreSQL and both processes share this machine.
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startEmbeddedPostgres } from '@rouse/database'
import { familyCpuSeconds } from '../support/family-cpu.ts'
import { percentiles } from '../support/figures.ts'
import { startNode } from '../support/node.ts'
import type { SdkFigures, SdkJob } from './load.ts'

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    'warm-up': { type: 'string', default: '3' },
    'in-flight': { type: 'string', default: '64' },
    partitions: { type: 'string', default: '1,100' },
  },
})
const server = await startEmbeddedPostgres({
  settings: { shared_buffers: '512MB', max_wal_size: '4GB' },
})
const node = await startNode(server.url)
try {
  for (const partitions of flags.partitions.split(',')) await endToEnd(Number(partitions))
} finally {
  await node.stop()
  await server.stop()
}

async function endToEnd(partitions: number): Promise<void> {
  const load = {
    url: node.url,
    queue: randomUUID(),
    inFlight: Number(flags['in-flight']),
    partitions,
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
  const perMessage = (cpuSeconds: number): string =>
    `${((cpuSeconds * 1e6) / handled.messages).toFixed(0)} µs`
  console.log(
    `${partitions} partition(s), ${load.inFlight} in flight: ` +
      `${Math.round(handled.messages / seconds).toLocaleString('en')} msg/s end to end, ` +
      `${handled.messages.toLocaleString('en')} messages, each handled once\n` +
      `  CPU a message: producer ${perMessage(pushed.cpuSeconds)}, consumer ${perMessage(handled.cpuSeconds)}, ` +
      `node ${perMessage(familyCpuSeconds(node.pid) - before.node)}, ` +
      `PostgreSQL ${perMessage(familyCpuSeconds(server.pid) - before.postgres)}\n` +
      `  push: ${percentiles(pushed.latenciesMs)}\n  push to handler: ${percentiles(handled.latenciesMs)}`,
  )
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
