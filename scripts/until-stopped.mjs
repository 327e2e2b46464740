// Resolves with the reason when this program has been told to end.
const parentCheckMs = 250

/**
 * A signal to `npm start` reaches npm and its shell, but not always the program under them. Run by
 * npm, the loss of the parent therefore counts as a signal; run by hand it does not, because a
 * shell that was closed is no reason to stop. Later signals are heard and mean nothing new: a terminal
 * sends one to every process, and npm passes its own on.
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
