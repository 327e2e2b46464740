// Resolves with the reason when this program should end.
const parentCheckMs = 250

/** A signal to `npm start` reaches npm and its shell, but not always the program under them. If npm runs
 * the program, the loss of the parent therefore counts as a signal; otherwise it does not, because a
 * closed shell is not a reason to stop. Later signals are ignored: a terminal sends one to every process,
 * and npm forwards its own. */
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
