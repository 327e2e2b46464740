import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'

const here = fileURLToPath(new URL('.', import.meta.url))

test('the compiler rejects wrong payloads, queues and durations, and accepts correct ones', async (t) => {
  const tsc = fileURLToPath(new URL('../../../node_modules/.bin/tsc', import.meta.url))
  const run = promisify(execFile)(tsc, ['--noEmit', '-p', 'typed-queues.tsconfig.json'], {
    cwd: here,
  })
  const output = await run.then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: string }) => stdout,
  )
  t.equal(output, '')
})
