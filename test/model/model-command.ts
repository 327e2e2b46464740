// `npm run model -- --minutes 10 --seed 7`: docs/testing.md. Exit code 0: the product agrees with the model.
// 1: it does not. 2: the command is invalid.
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { modelBug } from './bugs.ts'
import { startProduct } from './product.ts'
import { runModel } from './run.ts'

process.exit(await main(process.argv.slice(2)))

async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '3' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      path: { type: 'string' },
      keep: { type: 'string' },
      bug: { type: 'string' },
    },
  })
  const ends: (() => unknown)[] = []
  const bug = values.bug === undefined ? undefined : modelBug(values.bug)
  const say = (line: string) => process.stdout.write(`${line}\n`)
  try {
    const product = await startProduct({ teardown: (end) => ends.unshift(end) }, bug)
    const ms = Number(values.minutes) * 60_000
    const { ok } = await runModel({
      product,
      ms,
      seed: Number(values.seed),
      path: values.path,
      bug: values.bug,
      keep: values.keep?.split(',').map(Number),
      say,
    })
    return ok ? 0 : 1
  } finally {
    for (const end of ends) await end()
  }
}
