// The tasks of a page's main thread, as the browser traces them. Other tests use the machine at the same time, so a task's
// duration says little; the CPU time of its thread is what the page itself needs.
import type { Browser, Page } from 'playwright-core'

export interface Task {
  readonly cpuMs: number
  readonly ms: number
}

interface TraceEvent {
  readonly name: string
  readonly ph: string
  readonly pid: number
  readonly tid: number
  /** Microseconds: duration, and CPU time of the thread. */
  readonly dur?: number
  readonly tdur?: number
  readonly args?: { readonly name?: string; readonly data?: { readonly processId?: number } }
}

const categories = ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline']

/** The tasks during an action, longer than a millisecond or not. */
export async function traceTasks(
  browser: Browser,
  page: Page,
  act: () => Promise<void>,
): Promise<Task[]> {
  await browser.startTracing(page, { categories })
  let events: readonly TraceEvent[] = []
  try {
    await act()
  } finally {
    const trace = JSON.parse((await browser.stopTracing()).toString()) as {
      readonly traceEvents: readonly TraceEvent[]
    }
    events = trace.traceEvents
  }
  const main = new Set(
    events
      .filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid}/${tid}`),
  )
  return events
    .filter(
      ({ name, ph, pid, tid }) => name === 'RunTask' && ph === 'X' && main.has(`${pid}/${tid}`),
    )
    .map(({ dur = 0, tdur = 0 }) => ({ ms: dur / 1_000, cpuMs: tdur / 1_000 }))
}
