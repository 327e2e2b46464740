// All queues with their figures, read page by page: a page of 500 queues takes a few milliseconds to parse, so the
// browser stays responsive with 10,000 of them. Shared by the pages that need it, and read only while one is shown.
import { useEffect } from 'preact/hooks'
import type { QueueFigures } from './answers.ts'
import { type ApiError, ask, withQuery } from './client.ts'
import { useEvents } from './live.ts'
import { rememberRates } from './rate-history.ts'
import { Store, useStore } from './store.ts'
import { isPaused } from './use-data.ts'

export interface QueueListState {
  /** Undefined before the first answer. */
  readonly queues: readonly QueueFigures[] | undefined
  readonly asOf: string | undefined
  readonly error: ApiError | undefined
}

const pageSize = 500
const everyMs = 2_000
/** The maximum share of the time that is spent on reading. */
const share = 0.2

const list = new Store<QueueListState>({ queues: undefined, asOf: undefined, error: undefined })
let followers = 0
let timer: ReturnType<typeof setTimeout> | undefined
let isReading = false

export function useQueueList(): QueueListState {
  useEvents('queue', readQueues)
  useEffect(() => {
    followers += 1
    readQueues()
    const stopFollowing = isPaused.follow(() => {
      if (isPaused.value) clearTimeout(timer)
      else readQueues()
    })
    return () => {
      followers -= 1
      stopFollowing()
    }
  }, [])
  return useStore(list)
}

/** Reads the list now, for example after a change. */
export function readQueues(): void {
  clearTimeout(timer)
  if (!isReading) void read()
}

async function read(): Promise<void> {
  isReading = true
  const begunMs = performance.now()
  if (!document.hidden) {
    try {
      const found = await readAll()
      // In tasks of their own, so that none of them is long.
      await nextTask()
      rememberRates(found.queues)
      await nextTask()
      list.set({ ...found, error: undefined })
    } catch (error) {
      list.set({ ...list.value, error: error as ApiError })
    }
  }
  isReading = false
  const tookMs = performance.now() - begunMs
  if (followers === 0 || isPaused.value) return
  timer = setTimeout(() => void read(), Math.max(everyMs, tookMs / share))
}

interface Page {
  readonly queues: readonly QueueFigures[]
  readonly asOf: string
  readonly cursor: string | null
}

function nextTask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0))
}

async function readAll(): Promise<{ queues: QueueFigures[]; asOf: string | undefined }> {
  const queues: QueueFigures[] = []
  let cursor: string | null = null
  let asOf: string | undefined
  do {
    const page: Page = await ask(withQuery('/api/v1/queues', { limit: pageSize, cursor }))
    for (const queue of page.queues) queues.push(queue)
    await nextTask()
    // The first list appears as soon as its first page is there.
    if (list.value.queues === undefined && page.cursor !== null) {
      list.set({ queues: [...queues], asOf: page.asOf, error: undefined })
    }
    asOf = page.asOf
    cursor = page.cursor
  } while (cursor !== null && followers > 0)
  return { queues, asOf }
}
