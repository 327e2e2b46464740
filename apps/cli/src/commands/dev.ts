import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { CliError } from '../cli-error.ts'
import { count } from '../format.ts'
import { verb } from '../verb.ts'

interface Options {
  readonly nodes: number
  readonly port: number
  readonly data: string
}

export function devVerb(program: Command): void {
  verb(
    program,
    'dev',
    'run a cluster on a PostgreSQL of its own, until Ctrl-C',
    'rouse dev --nodes 3',
  )
    .option('--nodes <count>', 'how many', count, 3)
    .option('--port <port>', 'the balanced one', count, 4600)
    .option('--data <folder>', 'where everything is kept', folder, '.rouse')
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
        throw forReader(error)
      }
    })
}

/** A code means that the message is meant for whoever reads it here. */
function forReader(error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error)) return error
  // What was given up may still be under way, and would keep this process.
  if (error.code === 'stuck') setImmediate(() => process.exit())
  return new CliError(error.code === 'bad_argument' ? 'usage' : 'failed', error.message)
}

function folder(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('Name a folder.')
  return text
}
