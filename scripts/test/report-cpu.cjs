// Preloaded into a test process: when it exits, it writes to the pipe that ROUSE_TEST_CPU_FD names how much CPU it
// has used, together with the processes that it has started and waited for.
const { readFileSync, writeSync } = require('node:fs')
const { isMainThread } = require('node:worker_threads')

const fd = Number(process.env.ROUSE_TEST_CPU_FD)
// The number of the pipe means nothing to the processes that the test starts.
delete process.env.ROUSE_TEST_CPU_FD

if (fd && isMainThread) {
  process.once('exit', () => {
    try {
      writeSync(fd, readFileSync('/proc/self/stat', 'latin1'))
    } catch {
      // Only Linux has /proc; elsewhere the runner prints no CPU time.
    }
  })
}
