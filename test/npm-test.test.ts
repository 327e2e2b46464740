// The arguments of `npm test`, and how its runner reports a file.
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'

const root = fileURLToPath(new URL('..', import.meta.url))
const command = join(root, 'scripts/test.mjs')

for (const [args, problem] of [
  [['--quik'], 'unknown flag --quik; it takes --quick, or test files and folders'],
  [['-q', 'test/tidy.test.ts'], 'unknown flag -q; it takes --quick, or test files and folders'],
  [
    ['--quick', 'test/tidy.test.ts'],
    '--quick has its own list of files; give either --quick or files',
  ],
  [['test/tydi.test.ts'], 'there is no file test/tydi.test.ts'],
  [['docs'], 'the folder docs has no test files'],
] as const) {
  test(`npm test -- ${args.join(' ')} is refused in one line, before anything is built`, async (t) => {
    const { code, out, err } = await npmTest(args)
    t.equal(code, 1)
    t.equal(out, '')
    t.equal(err, `npm test: ${problem}\n`)
  })
}

test('the report of a failed file names the lines of its sources', async (t) => {
  const { file, out } = await runOne(t, [
    "import { test } from 'tap'",
    "import { helper } from './helper.ts'",
    "test('compares', async (t) => {",
    '  t.equal(1, 2)',
    '})',
    "test('throws', async () => helper())",
  ])
  t.match(out, `fileName: ${file}\n        lineNumber: 4\n`)
  t.match(out, `helper (${file.replace('some.test.ts', 'helper.ts')}:1:`)
  t.match(out, /✗ .*some\.test\.ts: 0 passed, 2 FAILED \([\d.]+ s(, CPU [\d.]+ s)?\)/)
  t.match(out, /\n0 passed, 2 failed\n$/)
})

test('a file whose top never ends counts as failed, although its tests passed', async (t) => {
  const { out } = await runOne(t, [
    "import { test } from 'tap'",
    "test('passes', async (t) => t.ok(true))",
    'await new Promise(() => {})',
    "test('never begins', async (t) => t.ok(true))",
  ])
  t.match(out, 'the file exited with 13')
  t.match(out, /\n1 passed, 1 failed\n$/)
})

test('a file that fails, and passes when it runs again alone, is reported as unsteady', async (t) => {
  const { code, file, out } = await runOne(t, [
    "import { existsSync, writeFileSync } from 'node:fs'",
    "import { test } from 'tap'",
    "const mark = new URL('mark', import.meta.url)",
    "test('passes the second time', async (t) => t.ok(existsSync(mark)))",
    "writeFileSync(mark, '')",
  ])
  t.equal(code, 0)
  t.match(out, `\nunsteady: ${file} failed once, then passed alone\n`)
  t.match(out, /\n1 passed, 0 failed\n$/)
})

test('a file without tests counts as failed', async (t) => {
  const { out } = await runOne(t, ['export const nothing = true'])
  t.match(out, 'the file has no tests')
  t.match(out, /\n0 passed, 1 failed\n$/)
})

/** Runs a file with this text through the runner, in a bundle without the other test files. */
async function runOne(t: Test, lines: readonly string[]) {
  const folder = t.testdir({
    'some.test.ts': lines.join('\n'),
    'helper.ts': "export const helper = () => { throw new Error('no') }",
  })
  const file = relative(root, join(folder, 'some.test.ts'))
  const scripts = new URL('../scripts/test/', import.meta.url).href
  const program = `
    import { bundleTests } from '${scripts}bundle-tests.mjs'
    import { reportRuns, runTasks } from '${scripts}run-tap.mjs'
    const program = await bundleTests(['${file}'], [])
    process.exitCode = reportRuns([await runTasks([{ program, file: '${file}', name: '${file}' }])])`
  writeFileSync(join(folder, 'run.mjs'), program)
  return { file, ...(await nodeProgram(join(folder, 'run.mjs'))) }
}

async function npmTest(args: readonly string[]) {
  return nodeProgram(command, ...args)
}

async function nodeProgram(...args: string[]) {
  return new Promise<{ code: number | null; out: string; err: string }>((resolve) => {
    const child = execFile(process.execPath, args, (_error, out, err) => {
      resolve({ code: child.exitCode, out, err })
    })
  })
}
