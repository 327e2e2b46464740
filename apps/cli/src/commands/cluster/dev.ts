import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { CliError } from '../../cli-error.ts'
import { count } from '../../format.ts'
import { verb } from '../../verb.ts'

interface Options {
  readonly nodes: number
  readonly port: number
  readonly data: string
}

export function devVerb(program: Command): void {
  verb(
    program,
    'dev',
    'run a cluster with an embedded PostgreSQL, until Ctrl-C',
    'rouse dev --nodes 3',
  )
    .option('--nodes <count>', 'number of nodes', count, 3)
    .option('--port <port>', 'port of the balancer', count, 4600)
    .option('--data <folder>', 'data folder', folder, '.rouse')
    .action(async (options: Options) => {
      const stopped = new Promise<void>((done) => {
        for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => done())
      })
      const { DevCluster } = await import('@rouse/broker')
      try {
        const dev = new DevCluster({
          ...options,
          dataDir: resolve(options.data),
          say: (line) => void process.stdout.write(`${line}\n`),
        })
        try {
          await Promise.race([dev.start(), stopped])
          await stopped
        } finally {
          await dev.stop()
        }
      } catch (error) {
        throw toCliError(error)
      }
    })
}

/** The message of an error with a code is written for the user. */
function toCliError(error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error)) return error
  // An abandoned start may still be running and would keep this process alive.
  if (error.code === 'stuck') setImmediate(() => process.exit())
  return new CliError(error.code === 'bad_argument' ? 'usage' : 'failed', error.message)
}

function folder(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('Name a folder.')
  return text
}
