import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { breakProduct, brokenFiles } from './break-product.ts'
import { type Bug, broken } from './bug.ts'
import { bugNamed, bugs } from './bugs.ts'

test('there are at least twenty bugs, each with its own name', async (t) => {
  t.ok(bugs.length >= 20)
  t.equal(new Set(bugs.map(({ name }) => name)).size, bugs.length)
})

test('a bug whose text occurs never or twice is refused', async (t) => {
  const replacement = { file: 'some.sql', find: 'a', put: '$&' }
  t.throws(
    () => broken('bcd', replacement),
    /some.sql contains the text 0 times instead of once: a/,
  )
  t.throws(() => broken('abca', replacement), /contains the text 2 times/)
  t.equal(broken('abc', replacement), '$&bc')
})

test('every bug can be put into the current product', async (t) => {
  const { url } = await testDatabase(t)
  for (const bug of bugs) {
    const { afterMigrate, nodeEnv } = breakProduct(bug.replaces)
    await brokenFiles(bug.replaces)
    if (afterMigrate !== undefined) await afterMigrate(url)
    if (nodeEnv !== undefined) await loadModules(bug, nodeEnv)
    t.pass(bug.name)
  }
})

test('a module without the text to replace does not load', async (t) => {
  const file = 'packages/sidecar/dist/writes/write-operations.js'
  const bug = {
    ...bugNamed('mix-up-answers'),
    replaces: [{ file, find: 'no such text', put: '' }],
  }
  const { nodeEnv = {} } = breakProduct(bug.replaces)
  await t.rejects(loadModules(bug, nodeEnv), /does not contain: no such text/)
})

/**
 * Loads the modules as the nodes do. Starts Node through `env -i`, because tap would otherwise add its
 * loaders to the process.
 */
async function loadModules(bug: Bug, env: Readonly<Record<string, string>>): Promise<void> {
  const files = bug.replaces.map(({ file }) => new URL(`../../../${file}`, import.meta.url).href)
  const script = files.map((file) => `import ${JSON.stringify(file)}`).join('\n')
  const settings = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const node = [process.execPath, '--input-type=module', '-e', script]
  await promisify(execFile)('env', ['-i', ...settings, ...node])
}
