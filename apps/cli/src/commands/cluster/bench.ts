import { randomUUID } from 'node:crypto'
import { type Command, Option } from 'commander'
import { segment } from '../../api.ts'
import { CliError } from '../../cli-error.ts'
import { count, durationMs } from '../../format.ts'
import { sessionOf, type VerbSession, verb } from '../../verb.ts'
import { BenchRecord, type BenchStats } from './bench-record.ts'

interface Options {
  readonly seconds: number
  readonly verify?: boolean
  readonly inFlight: number
  readonly partitions: number
  readonly size: number
  readonly queue?: string
}

interface Payload {
  readonly n: number
  readonly sentAt: number
  readonly fill: string
}

const drainMsMax = 30_000
const progressMs = 250

export function benchVerb(program: Command): void {
  verb(
    program,
    'bench',
    'push and consume for a while, and measure rate and latency',
    `rouse bench --seconds 10 --verify`,
  )
    .addOption(
      new Option('-s, --seconds <duration>', 'duration of the pushes')
        .argParser(durationMs)
        .default(10_000, '10s'),
    )
    .option('--verify', 'check that every message arrives once and in order')
    .option('--in-flight <count>', 'concurrent pushes and handlers', count, 64)
    .option('--partitions <count>', 'number of partitions', count, 16)
    .option('--size <bytes>', 'payload size', count, 100)
    .option('--queue <queue>', 'default: a temporary queue')
    .action(async (_options: Options, command: Command) => {
      const session = sessionOf<Options>(command)
      await session.api.get('/ready')
      const stats = await run(session)
      const { output, options } = session
      if (!output.isHuman) output.json(stats)
      else printStats(session, stats)
      if (options.verify === true && stats.lost + stats.duplicated + stats.outOfOrder > 0) {
        throw new CliError('failed', 'messages were lost, duplicated or out of order')
      }
    })
}

async function run({ api, output, options }: VerbSession<Options>): Promise<BenchStats> {
  const name = options.queue ?? `rouse-bench-${randomUUID()}`
  // Loaded here, because no other verb needs the client.
  const { Rouse } = await import('@rouse/client')
  const { headers } = api
  const rouse = new Rouse<Record<string, Payload>>({ urls: [api.url], headers })
  const queue = rouse.queue(name)
  const record = new BenchRecord(options.partitions)
  const fill = 'x'.repeat(options.size)
  const group = queue.group(`bench-${randomUUID()}`)
  const worker = group.work({ concurrency: options.inFlight, from: 'all' }, async (message) => {
    record.received(message.data.n, performance.now() - message.data.sentAt)
  })
  const endsAt = performance.now() + options.seconds
  const progress = setInterval(
    () => showProgress(output.isHuman, record, endsAt, options.seconds),
    progressMs,
  )

  const produce = async (): Promise<void> => {
    while (performance.now() < endsAt) {
      const n = record.next()
      const sentAt = performance.now()
      await queue.push({ n, sentAt, fill }, { partition: `p${n % options.partitions}` })
      record.stored(n, performance.now() - sentAt)
    }
  }
  try {
    await Promise.all(Array.from({ length: options.inFlight }, produce))
    record.pushingEnded()
    await record.untilAllReceived(drainMsMax)
  } catch (error) {
    throw new CliError('server', (error as Error).message)
  } finally {
    clearInterval(progress)
    if (output.isHuman) process.stderr.write('\r\u001b[K')
    await worker.stop()
    await rouse.close()
    if (options.queue === undefined) {
      await api.delete(`/api/v1/resources/queues/${segment(name)}`).catch(() => {})
    }
  }
  return record.stats()
}

/** Shows a bar, the rate, and the lag of the consumers. */
function showProgress(
  isHuman: boolean,
  record: BenchRecord,
  endsAt: number,
  totalMs: number,
): void {
  if (!isHuman || !process.stderr.isTTY) return
  const done = Math.min(1, Math.max(0, 1 - (endsAt - performance.now()) / totalMs))
  const bar = '█'.repeat(Math.round(done * 30)).padEnd(30, '░')
  const { pushed, consumed, perSecond } = record.soFar()
  process.stderr.write(
    `\r\u001b[K${bar} ${pushed.toLocaleString('en-US')} pushed  ${perSecond.toLocaleString('en-US')}/s  ${pushed - consumed} behind`,
  )
}

function printStats({ output, options }: VerbSession<Options>, stats: BenchStats): void {
  const { pushed, consumed, pushPerSecond, consumePerSecond } = stats
  output.line(
    `pushed    ${pushed.toLocaleString('en-US')}  ${pushPerSecond.toLocaleString('en-US')}/s`,
  )
  output.line(
    `consumed  ${consumed.toLocaleString('en-US')}  ${consumePerSecond.toLocaleString('en-US')}/s`,
  )
  output.line()
  output.table(
    [
      { what: 'push', ...stats.pushMs },
      { what: 'end to end', ...stats.endToEndMs },
    ],
    [
      { title: 'LATENCY (ms)', value: ({ what }) => what },
      { title: 'P50', align: 'right', value: ({ p50 }) => p50 },
      { title: 'P95', align: 'right', value: ({ p95 }) => p95 },
      { title: 'P99', align: 'right', value: ({ p99 }) => p99 },
      { title: 'MAX', align: 'right', value: ({ max }) => max },
    ],
    '',
  )
  if (options.verify !== true) return
  const { lost, duplicated, outOfOrder } = stats
  output.line()
  output.line(`lost ${lost}  duplicated ${duplicated}  out of order ${outOfOrder}`)
}
