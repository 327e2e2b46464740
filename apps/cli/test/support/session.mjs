// Runs several command lines in one process, so that they share its start and its terminal. The file that the
// argument names has them as JSON. After each, both outputs get a line with its exit code.
import { readFileSync } from 'node:fs'
import { run } from '../../dist/run.js'

for (const args of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
  const code = await run([process.execPath, 'rouse', ...args])
  process.stdout.write(`@@end ${code}\n`)
  if (!process.stdout.isTTY) process.stderr.write(`@@end ${code}\n`)
}
