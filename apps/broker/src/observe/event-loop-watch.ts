import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Each check wakes the process, also an idle one: at 20 ms they were most of its wake-ups. */
const resolutionMs = 100
const reportMs = 1_000

export interface EventLoopWatch {
  start(): void
  stop(): void
}

/** Reports the longest delay of the event loop in each second, in milliseconds. */
export function watchEventLoop(report: (delayMs: number) => void): EventLoopWatch {
  const monitor = monitorEventLoopDelay({ resolution: resolutionMs })
  let timer: NodeJS.Timeout | undefined
  return {
    start() {
      monitor.enable()
      timer ??= setInterval(() => {
        // The monitor measures the time between its own timers.
        report(Math.max(0, monitor.max / 1e6 - resolutionMs))
        monitor.reset()
      }, reportMs).unref()
    },
    stop() {
      monitor.disable()
      clearInterval(timer)
      timer = undefined
    },
  }
}
