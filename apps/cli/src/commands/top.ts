import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import colors from 'picocolors'
import { type Api, query } from '../api.ts'
import { wallMs } from '../clock.ts'
import { type ClusterView, TopScreen } from '../screen/top-screen.ts'
import { sessionOf, verb } from '../verb.ts'
import { queuesAsJson, readQueues } from './queues.ts'

interface Options {
  readonly once?: boolean
}

const refreshMs = 1_000
const seriesMs = 60_000
const enterScreen = '\u001b[?1049h\u001b[?25l'
const leaveScreen = '\u001b[?25h\u001b[?1049l'
const ctrlC = '\u0003'
const home = '\u001b[H'
const clearLine = '\u001b[K'
const clearBelow = '\u001b[J'

export function topVerb(program: Command): void {
  verb(
    program,
    'top',
    'show queues and nodes live, the worst queue first; q quits',
    `rouse top
rouse top --once --json`,
  )
    .option('--once', 'print once and exit')
    .action(async (_options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      if (!output.isHuman) {
        const [{ body: cluster }, queues] = await Promise.all([
          api.get('/stats?scope=cluster'),
          queuesAsJson(api),
        ])
        return output.json({ cluster, queues })
      }
      const screen = new TopScreen(api.url)
      if (options.once === true) {
        screen.add(await readView(api))
        for (const line of screen.lines({ columns: output.width })) output.line(line)
        return
      }
      await runScreen(api, screen)
    })
}

async function readView(api: Api): Promise<ClusterView> {
  const from = new Date(wallMs() - seriesMs).toISOString()
  const [{ body: cluster }, queues, series] = await Promise.all([
    api.get('/stats?scope=cluster'),
    readQueues(api),
    // A node of an earlier release has no series.
    api.find(`/api/v1/series${query({ from })}`),
  ])
  return { cluster, queues, series, atMs: performance.now() }
}

async function runScreen(api: Api, screen: TopScreen): Promise<void> {
  const stopped = new AbortController()
  const stop = (): void => stopped.abort()
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  const releaseKeys = onKeys(['q', ctrlC], stop)
  let failure: string | undefined
  const draw = (): void => {
    const { columns, rows } = process.stdout
    const size = { columns: columns || undefined, rows: rows || undefined }
    const lines = [
      ...(failure === undefined ? [] : [colors.red(failure)]),
      ...screen.lines({ ...size, rows: (size.rows ?? 24) - (failure === undefined ? 0 : 1) }),
    ]
    process.stdout.write(`${home}${lines.join(`${clearLine}\n`)}${clearLine}${clearBelow}`)
  }
  process.stdout.on('resize', draw)
  process.stdout.write(enterScreen)
  try {
    while (!stopped.signal.aborted) {
      await readView(api).then(
        (view) => {
          failure = undefined
          screen.add(view)
        },
        (error: unknown) => {
          failure = (error as Error).message
        },
      )
      draw()
      await delay(refreshMs, undefined, { signal: stopped.signal }).catch(() => {})
    }
  } finally {
    process.stdout.off('resize', draw)
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
