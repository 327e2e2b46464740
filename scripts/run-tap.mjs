// Runs tap over some test files (all of them by default), and prints `N passed, M failed` over all such runs.
//
// A file that fails is run once more, alone: some tests hold a real clock against a machine whose
// cores are shared. Only a file that fails both times counts as failed. One that passes the second
// time is named `unsteady` at the end, and that is a defect to look into, in the test or in Rouse.
import { spawn } from 'node:child_process'
import { root, toolEnvironment } from './run.mjs'
import { reportTap } from './tap-report.mjs'

/** More than a few failures are no matter of chance. */
const runAgainMax = 5

/** How many tests passed and failed, and the names of the unsteady files. A tap that was not content counts as a failed test. */
export async function runTap(files, environment = {}) {
  const first = await runOnce(files, environment)
  const failedFiles = first.files.filter(({ failed }) => failed > 0).map(({ name }) => name)
  let { passed, failed } = first
  const unsteady = []
  if (failedFiles.length > 0 && failedFiles.length <= runAgainMax) {
    console.log(`\nonce more, alone: ${failedFiles.join(', ')}`)
    const second = await runOnce(['--jobs=1', ...failedFiles], environment)
    const steady = first.files.filter(({ name }) => !failedFiles.includes(name))
    passed = second.passed + sum(steady.map((file) => file.passed))
    failed = second.failed
    unsteady.push(...second.files.filter((file) => file.failed === 0).map(({ name }) => name))
  }
  return { passed, failed, unsteady }
}

/** Prints the sum as the last line, and answers the exit code: 0 only if no test of any run failed. */
export function reportRuns(runs) {
  for (const name of runs.flatMap(({ unsteady }) => unsteady)) {
    console.log(`unsteady: ${name} failed once, then passed alone`)
  }
  const passed = sum(runs.map((run) => run.passed))
  const failed = sum(runs.map((run) => run.failed))
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

async function runOnce(args, environment) {
  const child = spawn('tap', ['--reporter=tap', ...args], {
    cwd: root,
    env: { ...toolEnvironment, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
    shell: process.platform === 'win32',
  })
  const exited = new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve(code ?? 1))
  })
  const files = await reportTap(child.stdout, (text) => console.log(text))
  const passed = sum(files.map((file) => file.passed))
  const failed = sum(files.map((file) => file.failed))
  // tap can fail with every counted test green, for example when it could not start at all.
  return { files, passed, failed: (await exited) === 0 ? failed : Math.max(failed, 1) }
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0)
}
