// Three minutes of the model. Longer, and with a seed: `npm run model`.
import { randomInt } from 'node:crypto'
import { test } from 'tap'
import { startProduct } from './product.ts'
import { runModel } from './run.ts'

const seconds = Number(process.env.ROUSE_MODEL_SECONDS ?? 180)

test('every verb of the API does what the model says', async (t) => {
  t.setTimeout((seconds + 90) * 1_000)
  const product = await startProduct(t)
  const seed = randomInt(2 ** 31)
  const { ok, commands } = await runModel({
    product,
    ms: seconds * 1_000,
    seed,
    say: (line) => t.comment(line),
  })
  t.ok(ok, 'the comments above say what differs, and how to replay it')
  t.ok(commands > 0)
})
