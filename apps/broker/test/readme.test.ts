// Runs the first commands of the README, unchanged except for the port.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'
import { freePortBase, startDevCluster, untilReady } from './support/dev-cluster.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const port = freePortBase() + 800

test('the commands under "First message" in the README work', { timeout: 240_000 }, async (t) => {
  await untilReady(await startDevCluster(t, { nodes: 1, port }))
  t.teardown(() => rm(`${root}/hello.mjs`, { force: true }))
  const [curl, cli, sdk] = firstBlocks()
  t.match(await shell(curl), /"status":"queued".*"messages":\[.*"n":1/s)
  t.match(await shell(cli), /"status":"queued".*"n":2.*"queue":"hello"/s)
  t.match(await shell(sdk), /got \{ n: 3 \}/)
})

/** Returns the indented blocks of the section "First message". */
function firstBlocks(): string[] {
  const readme = readFileSync(`${root}/README.md`, 'utf8')
  const [, section = ''] = /## First message\n(.*?)From SQL/s.exec(readme) ?? []
  const blocks = section.match(/(?:^ {4}.*\n)+/gm) ?? []
  return blocks.map((block) => block.replaceAll(/^ {4}/gm, '').replaceAll('4600', String(port)))
}

async function shell(script: string | undefined): Promise<string> {
  const { PATH = '', HOME = '' } = process.env
  const env = { PATH, HOME, ROUSE_URL: `http://127.0.0.1:${port}` }
  const { stdout } = await promisify(execFile)('bash', ['-ec', script ?? 'exit 1'], {
    cwd: root,
    env,
  })
  return stdout
}
