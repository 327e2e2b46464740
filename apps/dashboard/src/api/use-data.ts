// Reads an address now and at intervals, while the page is visible and updates are not paused.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { type ApiError, ask } from './client.ts'
import { Store, useStore } from './store.ts'

/** Whether the user has paused updates. While they are paused, `reload` still reads. */
export const isPaused = new Store(false)

export interface Data<Answer> {
  readonly data: Answer | undefined
  readonly error: ApiError | undefined
  readonly reload: () => void
}

interface Options {
  /** 0: only once. */
  readonly everyMs?: number
  readonly isExact?: boolean
}

/** Answers of pages that were shown before, so that they appear at once. */
const known = new Map<string, unknown>()
const knownMax = 60

export function useData<Answer>(path: string | undefined, options: Options = {}): Data<Answer> {
  const { everyMs = 2_000, isExact = false } = options
  const paused = useStore(isPaused)
  const [state, setState] = useState<{ path?: string; data?: Answer; error?: ApiError }>({})
  const [round, setRound] = useState(0)
  const wasAsked = useRef<string | undefined>(undefined)

  useEffect(() => {
    if (path === undefined) return
    const isFirst = wasAsked.current !== `${path} ${round}`
    wasAsked.current = `${path} ${round}`
    if (paused && !isFirst) return
    return poll<Answer>(path, { everyMs: paused ? 0 : everyMs, isExact }, (result) =>
      setState(
        (last) =>
          ({ path, ...(last.path === path ? { data: last.data } : {}), ...result }) as typeof last,
      ),
    )
  }, [path, round, paused, everyMs, isExact])

  const reload = useCallback(() => setRound((last) => last + 1), [])
  const isCurrent = state.path === path
  const data = isCurrent ? state.data : undefined
  return {
    data: data ?? (path === undefined ? undefined : (known.get(path) as Answer | undefined)),
    error: isCurrent ? state.error : undefined,
    reload,
  }
}

type Result<Answer> = { data: Answer; error: undefined } | { error: ApiError }

/** Returns a function that ends it. */
function poll<Answer>(
  path: string,
  { everyMs, isExact }: Required<Options>,
  tell: (result: Result<Answer>) => void,
): () => void {
  let isOver = false
  let timer: ReturnType<typeof setTimeout> | undefined

  async function once(): Promise<void> {
    if (!document.hidden) {
      try {
        const data = await ask<Answer>(path, { isExact })
        remember(path, data)
        if (!isOver) tell({ data, error: undefined })
      } catch (error) {
        if (!isOver) tell({ error: error as ApiError })
      }
    }
    if (!isOver && everyMs > 0) timer = setTimeout(() => void once(), everyMs)
  }

  void once()
  return () => {
    isOver = true
    clearTimeout(timer)
  }
}

function remember(path: string, data: unknown): void {
  if (known.size >= knownMax) known.clear()
  known.set(path, data)
}
