// Steps of wake-ups as the event stream reports them, and how the map plays them: at once, or in slow motion, where one
// push with all its consequences is stretched and everything that happens meanwhile is counted, not shown.
export interface WakeStep {
  readonly key: number
  /** The time on the node that saw the step, in milliseconds. */
  readonly atMs: number
  readonly node: string
  readonly step: string
  readonly queue: string | null
  readonly group?: string | undefined
  readonly worker?: number | undefined
  readonly to?: string | undefined
  readonly from?: string | undefined
  readonly source?: string | undefined
  readonly count?: number | undefined
  readonly ms?: number | undefined
  readonly repeat?: boolean | undefined
  /** In slow motion: after the push that started it. */
  readonly offsetMs?: number | undefined
}

export function readStep(event: Readonly<Record<string, unknown>>, key: number): WakeStep {
  // A field that is not known is null in the stream: the duration of a pop that began before the page was open, for example.
  const known = Object.entries(event).filter(([name, value]) => value !== null || name === 'queue')
  const step = Object.fromEntries(known) as unknown as WakeStep
  return { ...step, key, atMs: Date.parse(String(event.at)) }
}

/** What starts a wake-up. */
const starts: ReadonlySet<string> = new Set(['push', 'free', 'timer', 'notify'])

/** How long the consequences of a push are gathered before they are played. */
export const gatherMs = 700
const stretchMax = 150
/** A wake-up that took longer is stretched less. */
const playedMsMax = 6_000

export interface Player {
  add(step: WakeStep): void
  setSlow(isSlow: boolean): void
  stop(): void
}

/** `show` gets each step when it is its turn; `skipped` counts those that were left out. */
export function createPlayer(
  show: (step: WakeStep, offsetMs: number) => void,
  onSkipped: (count: number) => void,
): Player {
  let isSlow = false
  let gathered: WakeStep[] = []
  let timers: ReturnType<typeof setTimeout>[] = []
  let isPlaying = false
  let skipped = 0

  function later(run: () => void, inMs: number): void {
    timers.push(setTimeout(run, inMs))
  }

  function clear(): void {
    for (const timer of timers) clearTimeout(timer)
    timers = []
    gathered = []
    isPlaying = false
  }

  function play(): void {
    const steps = gathered.toSorted((a, b) => a.atMs - b.atMs)
    gathered = []
    isPlaying = true
    const startMs = steps[0]?.atMs ?? 0
    const spanMs = (steps.at(-1)?.atMs ?? 0) - startMs
    const stretch = Math.min(stretchMax, playedMsMax / Math.max(spanMs, 1))
    for (const step of steps) {
      const offsetMs = step.atMs - startMs
      later(() => show(step, offsetMs), offsetMs * stretch)
    }
    later(
      () => {
        timers = []
        isPlaying = false
      },
      spanMs * stretch + 1_000,
    )
  }

  return {
    add(step) {
      if (!isSlow) return show(step, 0)
      if (isPlaying || (gathered.length === 0 && !starts.has(step.step))) {
        skipped += 1
        return onSkipped(skipped)
      }
      const [first] = gathered
      if (first === undefined) later(play, gatherMs)
      if (first === undefined || first.queue === step.queue || step.queue === null)
        gathered.push(step)
    },
    setSlow(slow) {
      isSlow = slow
      skipped = 0
      onSkipped(0)
      clear()
    },
    stop: clear,
  }
}

/** A hint has a time that counts from it; a new request and a poll have none. */
function grantedFor(source: string | undefined, took: string): string {
  if (source === 'request') return 'for a new request'
  if (source === 'fallback') return 'a poll without a hint'
  return `${source}${took} after the hint`
}

/** A step in words. */
export function textOf(step: WakeStep): string {
  const { node, worker, to, from, source, count = 0, ms, repeat } = step
  const took = ms === undefined ? '' : `, ${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
  switch (step.step) {
    case 'push':
      return `${node} stored ${count} through worker ${worker}`
    case 'free':
      return `${node} freed a partition through worker ${worker}`
    case 'timer':
      return `${node}: ${count} became due`
    case 'notify':
      return `${node}: an SQL producer announced ${count}`
    case 'hint_sent':
      return `${node} sent the hint to ${to}${repeat === true ? ' again, because no report came' : ''}`
    case 'hint_received':
      return `${node} received the hint from ${from}`
    case 'hint_lost':
      return `${node} misses ${count} ${count === 1 ? 'datagram' : 'datagrams'} of ${from}, and checks every waiter`
    case 'grant':
      return `${node} lets worker ${worker} pop (${grantedFor(source, took)})`
    case 'found':
      return `${node}: worker ${worker} found ${count}${took}`
    case 'empty':
      return `${node}: worker ${worker} found nothing${took}`
    default:
      return `${node}: ${step.step}`
  }
}
