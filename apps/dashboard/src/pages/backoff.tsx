// Group backoff, live: for each wait group how long until its next fallback poll, and how far it has backed off. A hint
// brings it back to the start.
import { useCallback, useState } from 'preact/hooks'
import { useEvents } from '../api/live.ts'
import { useCluster } from '../api/use-cluster.ts'
import { shownGroup } from '../attention.ts'
import { duration, plural } from '../parts/format.ts'
import { Panel } from '../parts/layout.tsx'
import { Empty } from '../parts/notice.tsx'

interface WaitGroup {
  readonly node: string
  readonly key: string
  readonly intervalMs: number
  readonly consecutiveEmpty: number
  readonly inFlight: boolean
  readonly waiting: number
  readonly nextCheckInMs: number
}

const shownMax = 40

export function BackoffPanel() {
  const { data } = useCluster()
  const [live, setLive] = useState<readonly WaitGroup[]>()
  const received = useCallback((event: Readonly<Record<string, unknown>>) => {
    setLive((event as { groups?: readonly WaitGroup[] }).groups)
  }, [])
  useEvents('groups', received)
  const polled = (data?.nodes ?? []).flatMap(({ node, group_backoff: { groups } }) =>
    groups.map((one) => ({ ...one, node })),
  )
  const groups = (live ?? polled).toSorted((a, b) => b.waiting - a.waiting)
  const longest = Math.max(...groups.map(({ intervalMs }) => intervalMs), 1)
  return (
    <Panel
      title="Group backoff"
      note="waiting pops are woken by hints; each bar runs until the next fallback poll, and gets longer while polls find nothing"
    >
      {groups.length === 0 ? (
        <Empty title="No pop waits">
          A group appears here while a consumer waits for messages.
        </Empty>
      ) : (
        <div class="spans">
          {groups.slice(0, shownMax).map((one) => (
            <BackoffRow key={`${one.node} ${one.key}`} group={one} longestMs={longest} />
          ))}
        </div>
      )}
      {groups.length > shownMax ? (
        <p class="muted">{plural(groups.length - shownMax, 'more group')}.</p>
      ) : null}
    </Panel>
  )
}

function BackoffRow({ group, longestMs }: { group: WaitGroup; longestMs: number }) {
  const { node, key, intervalMs, consecutiveEmpty, inFlight, waiting, nextCheckInMs } = group
  const left = Math.max(0, Math.min(1, nextCheckInMs / Math.max(intervalMs, 1)))
  // A group without waiters is not polled. It is kept for a while, because its consumer may return.
  const isIdle = waiting === 0 && !inFlight
  const done = isIdle ? 0 : 1 - left
  return (
    <div class="span-row backoff">
      <span class="span-name" title={key}>
        {shownGroup(key.replaceAll('__QUEUE_MODE__', 'default'))}
      </span>
      <span class="span-track">
        <span class="span-bar faint" style={{ width: `${(intervalMs / longestMs) * 100}%` }}>
          <span class={`span-bar ${inFlight ? 'busy' : ''}`} style={{ width: `${done * 100}%` }} />
        </span>
      </span>
      <span class="number">{isIdle ? '–' : nextPoll(inFlight, nextCheckInMs)}</span>
      <span class="span-text">
        {isIdle
          ? `${node}: no waiters`
          : `${node}: ${plural(waiting, 'waiter')}, interval ${duration(intervalMs)}, ${plural(consecutiveEmpty, 'empty poll')} in a row`}
      </span>
    </div>
  )
}

function nextPoll(inFlight: boolean, inMs: number): string {
  if (inFlight) return 'polling'
  return inMs < 1 ? 'now' : `in ${duration(inMs)}`
}
