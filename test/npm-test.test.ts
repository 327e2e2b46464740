// The arguments of `npm test`.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'

const command = fileURLToPath(new URL('../scripts/test.mjs', import.meta.url))

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

async function npmTest(args: readonly string[]) {
  return new Promise<{ code: number | null; out: string; err: string }>((resolve) => {
    const child = execFile(process.execPath, [command, ...args], (_error, out, err) => {
      resolve({ code: child.exitCode, out, err })
    })
  })
}
