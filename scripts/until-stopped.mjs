// Resolves with the reason when this program should end.
const parentCheckMs = 250

/**
 * A signal to `npm start` reaches npm and its shell, but not always the program that they run. So if npm runs
 * this program, the end of its parent process counts as a signal. Without npm it does not: a closed shell is
 * not a reason to stop. Later signals are ignored, because the same signal may arrive twice: from the
 * terminal, and from npm, which forwards its own.
 */
export function untilStopped() {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => resolve(signal))
    if (process.env.npm_lifecycle_event === undefined) return
    const parent = process.ppid
    const timer = setInterval(() => {
      if (process.ppid === parent) return
      clearInterval(timer)
      resolve('npm has ended')
    }, parentCheckMs)
    timer.unref()
  })
}
