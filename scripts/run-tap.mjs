// Runs tap over some test files (all of them by default) and prints `N passed, M failed` last.
import { spawn } from 'node:child_process'
import { root, toolEnvironment } from './run.mjs'
import { reportTap } from './tap-report.mjs'

/** Answers the exit code: 0 only if tap was content and no test failed. */
export async function runTap(files, environment = {}) {
  const child = spawn('tap', ['--reporter=tap', ...files], {
    cwd: root,
    env: { ...toolEnvironment, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
    shell: process.platform === 'win32',
  })
  const exited = new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve(code ?? 1))
  })
  const { passed, failed } = await reportTap(child.stdout, (text) => console.log(text))
  // tap can fail with every counted test green, for example when it could not start at all.
  const failures = (await exited) === 0 ? failed : Math.max(failed, 1)
  console.log(`${passed} passed, ${failures} failed`)
  return failures === 0 ? 0 : 1
}
