// Runs the model for three minutes with a fixed seed, so that the result of the tests does not depend on
// chance. `npm run model` uses a random seed and runs for as long as requested.
import { test } from 'tap'
import { startProduct } from './product.ts'
import { runModel } from './run.ts'

const seconds = Number(process.env.ROUSE_MODEL_SECONDS ?? 180)

test('every call of the API does what the model expects', async (t) => {
  t.setTimeout((seconds + 90) * 1_000)
  const product = await startProduct(t)
  const { ok, commands } = await runModel({
    product,
    ms: seconds * 1_000,
    seed: Number(process.env.ROUSE_MODEL_SEED ?? 7),
    say: (line) => t.comment(line),
  })
  t.ok(ok, 'the comments above show the difference and the command to replay it')
  t.ok(commands > 0)
})
