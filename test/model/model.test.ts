// Three minutes of the model, always with the same seed: a run of the tests must not depend on luck. `npm run model` draws a
// new seed, and runs for longer.
import { test } from 'tap'
import { startProduct } from './product.ts'
import { runModel } from './run.ts'

const seconds = Number(process.env.ROUSE_MODEL_SECONDS ?? 180)

test('every verb of the API does what the model says', async (t) => {
  t.setTimeout((seconds + 90) * 1_000)
  const product = await startProduct(t)
  const { ok, commands } = await runModel({
    product,
    ms: seconds * 1_000,
    seed: Number(process.env.ROUSE_MODEL_SEED ?? 7),
    say: (line) => t.comment(line),
  })
  t.ok(ok, 'the comments above say what differs, and how to replay it')
  t.ok(commands > 0)
})
