import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import colors from 'picocolors'
import type { Json } from '../api.ts'
import { absence, ago } from '../format.ts'
import { formatTable } from '../table.ts'
import { sessionOf, verb } from '../verb.ts'
import { queueColumns, queuesAsJson, worstFirst } from './queues.ts'

interface Options {
  readonly once?: boolean
}

const refreshMs = 1_000
const enterScreen = '\u001b[?1049h\u001b[?25l'
const leaveScreen = '\u001b[?25h\u001b[?1049l'
const ctrlC = '\u0003'
const home = '\u001b[H\u001b[J'

export function topVerb(program: Command): void {
  verb(
    program,
    'top',
    'show the cluster live',
    `rouse top
rouse top --once --json`,
  )
    .option('--once', 'print once and exit')
    .action(async (_options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      const readCluster = async (): Promise<{ cluster: Json; queues: Json[] }> => {
        const [stats, queues] = await Promise.all([
          api.get('/stats?scope=cluster'),
          output.isHuman ? api.all('/api/v1/queues', 'queues') : queuesAsJson(api),
        ])
        return { cluster: stats.body, queues }
      }
      if (!output.isHuman) return output.json(await readCluster())
      if (options.once === true) return output.line(screenOf(await readCluster(), 200).join('\n'))
      await runScreen(readCluster)
    })
}

async function runScreen(
  readCluster: () => Promise<{ cluster: Json; queues: Json[] }>,
): Promise<void> {
  const stopped = new AbortController()
  const stop = (): void => stopped.abort()
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  const releaseKeys = onKeys(['q', ctrlC], stop)
  process.stdout.write(enterScreen)
  try {
    while (!stopped.signal.aborted) {
      const lines = await readCluster().then(
        // A terminal of unknown height reports 0.
        (seen) => screenOf(seen, process.stdout.rows || undefined),
        (error: unknown) => [colors.red((error as Error).message)],
      )
      process.stdout.write(`${home}${lines.join('\n')}`)
      await delay(refreshMs, undefined, { signal: stopped.signal }).catch(() => {})
    }
  } finally {
    process.stdout.write(leaveScreen)
    releaseKeys()
  }
}

/** Reads single keys, including Ctrl-C, until the returned function is called. */
function onKeys(keys: readonly string[], act: () => void): () => void {
  const { stdin } = process
  if (!stdin.isTTY) return () => {}
  const onData = (bytes: Buffer): void => {
    if (keys.some((key) => bytes.includes(key))) act()
  }
  stdin.setRawMode(true)
  stdin.on('data', onData)
  return () => {
    stdin.off('data', onData)
    stdin.setRawMode(false)
    stdin.pause()
  }
}

function screenOf(
  { cluster, queues }: { readonly cluster: Json; readonly queues: readonly Json[] },
  rows = 40,
): string[] {
  const { totals, nodes, unreachable } = cluster
  const rate = Object.values(totals.queries_per_second as Record<string, number>)
  const queries = rate.reduce((sum, one) => sum + one, 0)
  return [
    `${colors.bold('rouse')}  ${totals.nodes} nodes  ${totals.waiting} waiting  ${queries.toFixed(0)} queries/s`,
    ...unreachable.map((node: Json) => colors.red(absence(node))),
    '',
    ...formatTable<Json>(nodes, [
      { title: 'NODE', value: ({ node }) => node },
      { title: 'MODE', value: ({ mode }) => mode.mode },
      { title: 'UP', align: 'right', value: ({ uptime }) => ago(uptime * 1_000) },
      { title: 'WAITING', align: 'right', value: ({ waiting }) => waiting.total },
      { title: 'REQUESTS', align: 'right', value: ({ requests }) => requests },
      { title: 'BY UDP', align: 'right', value: ({ wakes }) => wakes.udp },
      { title: 'BY PUSH', align: 'right', value: ({ wakes }) => wakes.local + wakes.ipc },
      { title: 'BY FALLBACK', align: 'right', value: ({ wakes }) => wakes.fallback },
    ]),
    '',
    ...(queues.length === 0 ? ['no queues yet'] : formatTable(worstFirst(queues), queueColumns)),
    '',
    colors.dim('q or Ctrl-C to quit'),
  ].slice(0, Math.max(5, rows))
}
