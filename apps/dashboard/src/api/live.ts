// The event stream of the cluster. There is one stream for the whole page; a page that needs more events asks for them,
// and the stream is opened again with them. If a node has no stream, or it fails, the pages still read at intervals.
import { useEffect } from 'preact/hooks'
import { nowMs } from '../clock.ts'
import { withQuery } from './client.ts'
import { Store } from './store.ts'
import { isPaused } from './use-data.ts'

export type StreamState = 'off' | 'connecting' | 'live' | 'polling'
export const streamState = new Store<StreamState>('off')

type Listener = (event: Readonly<Record<string, unknown>>) => void
const names = ['hello', 'missed', 'rates', 'queue', 'cluster', 'wake', 'groups', 'end'] as const
export type EventName = (typeof names)[number]

const listeners = new Map<EventName, Set<Listener>>(names.map((name) => [name, new Set()]))
const needed = { wakes: 0, groups: 0 }
const firstWaitMs = 300
const waitMsMax = 5_000
const seenMax = 500

let isOn = false
let source: EventSource | undefined
let opened = ''
let lastId = ''
let failures = 0
let timer: ReturnType<typeof setTimeout> | undefined
const seen = new Set<string>()

/** Opens the stream. Returns a function that closes it. */
export function startStream(): () => void {
  isOn = true
  const unfollow = isPaused.follow(reopen)
  addEventListener('online', reopen)
  reopen()
  return () => {
    isOn = false
    unfollow()
    removeEventListener('online', reopen)
    reopen()
  }
}

/** Follows events of a name while the component is shown. */
export function useEvents(name: EventName, listener: Listener): void {
  useEffect(() => {
    const own = listeners.get(name)
    own?.add(listener)
    const feature = name === 'wake' ? 'wakes' : name === 'groups' ? 'groups' : undefined
    if (feature !== undefined) {
      needed[feature] += 1
      reopen()
    }
    return () => {
      own?.delete(listener)
      if (feature === undefined) return
      needed[feature] -= 1
      // Another page may need it at once.
      setTimeout(reopen, 0)
    }
  }, [name, listener])
}

function reopen(): void {
  const wanted =
    isPaused.value || !isOn
      ? ''
      : withQuery('/api/v1/events', {
          wakes: needed.wakes > 0 || undefined,
          groups: needed.groups > 0 || undefined,
        })
  if (wanted === opened && source !== undefined) return
  close()
  opened = wanted
  failures = 0
  if (wanted === '') streamState.set('off')
  else open()
}

function close(): void {
  clearTimeout(timer)
  source?.close()
  source = undefined
}

function open(): void {
  if (streamState.value !== 'polling') streamState.set('connecting')
  const own = new EventSource(`..${withId(opened)}`)
  source = own
  for (const name of names) {
    own.addEventListener(name, (event) => received(name, event as MessageEvent<string>))
  }
  own.onopen = () => {
    failures = 0
    streamState.set('live')
  }
  own.onerror = () => {
    if (source === own) retry()
  }
}

/** After a stream that worked, tries again soon: behind a balancer another node may answer. */
function retry(): void {
  close()
  failures += 1
  streamState.set(failures > 1 ? 'polling' : 'connecting')
  timer = setTimeout(open, Math.min(firstWaitMs * 2 ** (failures - 1), waitMsMax))
}

function withId(path: string): string {
  if (lastId === '') return path
  return `${path}${path.includes('?') ? '&' : '?'}lastEventId=${encodeURIComponent(lastId)}`
}

function received(name: EventName, event: MessageEvent<string>): void {
  if (event.lastEventId !== '' && event.lastEventId !== lastId) {
    lastId = event.lastEventId
    // After a return the last seconds are repeated.
    if (name === 'queue' || name === 'cluster') {
      if (seen.has(lastId)) return
      if (seen.size >= seenMax) seen.clear()
      seen.add(lastId)
    }
  }
  if (name === 'end') return retry()
  const data = { ...(JSON.parse(event.data) as Record<string, unknown>), receivedAtMs: nowMs() }
  for (const listener of listeners.get(name) ?? []) listener(data)
}
