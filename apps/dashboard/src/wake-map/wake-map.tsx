// The cluster as a picture: a push lights its worker, the hint travels to another node, the grant runs to a worker with
// waiters, a lost datagram is red. With the timings of the event stream.
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { NodeStats, Unreachable } from '../api/answers.ts'
import { streamState, useEvents } from '../api/live.ts'
import { useStore } from '../api/store.ts'
import { plural } from '../parts/format.ts'
import { Panel } from '../parts/layout.tsx'
import { Effects } from './effects.tsx'
import { type Place, placeNodes, sizeOf } from './places.ts'
import { createPlayer, readStep, textOf, type WakeStep } from './wake-events.ts'

const shownMs = 1_600
const shownMax = 60
const logMax = 8

export function WakeMap({
  nodes,
  unreachable,
}: {
  nodes: readonly NodeStats[]
  unreachable: readonly Unreachable[]
}) {
  const [isSlow, setIsSlow] = useState(false)
  const { steps, log, skipped } = useSteps(isSlow)
  const stream = useStore(streamState)
  const isNarrow = matchMedia('(max-width: 700px)').matches
  const places = useMemo(
    () => placeNodes(nodes, unreachable, isNarrow),
    [nodes, unreachable, isNarrow],
  )
  const { width, height } = sizeOf(isNarrow, places.length)
  return (
    <Panel
      title="Wake map"
      note={
        stream === 'live'
          ? 'every step of a wake-up, as the nodes report it'
          : 'waiting for the event stream'
      }
      actions={
        <label class="check">
          <input
            type="checkbox"
            checked={isSlow}
            onChange={(event) => setIsSlow(event.currentTarget.checked)}
          />
          Slow motion (up to 150 times slower)
        </label>
      }
    >
      <svg
        class="wake-map"
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label="The nodes of the cluster and the hints between them"
      >
        <Links places={places} />
        {places.map((place) => (
          <NodeBox key={place.id} place={place} />
        ))}
        <Effects steps={steps} places={places} isSlow={isSlow} />
      </svg>
      <Legend />
      <ol class="wake-log" aria-live="off">
        {log.length === 0 ? (
          <li class="muted wake-hint">
            {isSlow
              ? 'The next push is shown in slow motion, with everything that follows from it.'
              : 'Push a message while a consumer waits, and the way of the hint appears here.'}
          </li>
        ) : null}
        {log.map((step) => (
          <li key={step.key} class={`step-${step.step}`}>
            <time>{isSlow ? `+${step.offsetMs ?? 0} ms` : clockOf(step.atMs)}</time>
            <code title={step.queue ?? undefined}>{step.queue ?? ''}</code>
            <span>{textOf(step)}</span>
          </li>
        ))}
      </ol>
      {skipped > 0 ? (
        <p class="muted">{plural(skipped, 'step')} not shown in slow motion.</p>
      ) : null}
    </Panel>
  )
}

function useSteps(isSlow: boolean) {
  const [steps, setSteps] = useState<readonly WakeStep[]>([])
  const [log, setLog] = useState<readonly WakeStep[]>([])
  const [skipped, setSkipped] = useState(0)
  const keys = useRef(0)
  const player = useMemo(
    () =>
      createPlayer((played, offsetMs) => {
        const step = { ...played, offsetMs }
        setSteps((last) => [...last.slice(-shownMax), step])
        setLog((last) => [step, ...last].slice(0, logMax))
        setTimeout(() => setSteps((last) => last.filter((one) => one !== step)), shownMs)
      }, setSkipped),
    [],
  )
  useEffect(() => {
    player.setSlow(isSlow)
    setLog([])
  }, [player, isSlow])
  useEffect(() => () => player.stop(), [player])
  const received = useCallback(
    (event: Readonly<Record<string, unknown>>) => {
      keys.current += 1
      player.add(readStep(event, keys.current))
    },
    [player],
  )
  useEvents('wake', received)
  return { steps, log, skipped }
}

const legend: readonly [kind: string, text: string][] = [
  ['push', 'push, or a partition that became free'],
  ['hint', 'hint'],
  ['repeat', 'hint sent again'],
  ['grant', 'grant of the primary (P)'],
  ['found', 'messages found'],
  ['nothing', 'nothing found'],
  ['lost', 'lost datagram'],
]

function Legend() {
  return (
    <ul class="wake-legend">
      {legend.map(([kind, text]) => (
        <li key={kind}>
          <span class={`mark ${kind}`} /> {text}
        </li>
      ))}
    </ul>
  )
}

function clockOf(atMs: number): string {
  const ms = String(Math.floor(atMs % 1_000)).padStart(3, '0')
  return `${new Date(atMs).toLocaleTimeString('en-GB')}.${ms}`
}

/** A line between two nodes; dashed and red if gossip fails between them. */
function Links({ places }: { places: readonly Place[] }) {
  return (
    <g>
      {places.flatMap((a, i) =>
        places.slice(i + 1).map((b) => {
          const isCut = a.silent.includes(b.id) || b.silent.includes(a.id)
          const isGone = !a.isAlive || !b.isAlive
          return (
            <line
              key={`${a.id} ${b.id}`}
              class={`link ${isCut ? 'cut' : isGone ? 'gone' : ''}`}
              x1={a.x}
              y1={a.y}
              x2={b.x}
              y2={b.y}
            />
          )
        }),
      )}
    </g>
  )
}

function NodeBox({ place }: { place: Place }) {
  const { id, x, y, width, height, primary, workers, isAlive, mode, waiting } = place
  return (
    <g class={`node ${isAlive ? mode : 'gone'}`}>
      <rect
        class="frame"
        x={x - width / 2}
        y={y - height / 2}
        width={width}
        height={height}
        rx="8"
      />
      <text x={x} y={y - height / 2 + 18} text-anchor="middle">
        {id}
      </text>
      <text class="small" x={x} y={y + height / 2 - 8} text-anchor="middle">
        {isAlive ? `${mode}, ${plural(waiting, 'waiter')}` : 'does not answer'}
      </text>
      {isAlive ? (
        <g>
          <title>The primary of {id}, which decides who pops</title>
          <rect
            class="primary"
            x={primary.x - 10}
            y={primary.y - 10}
            width="20"
            height="20"
            rx="4"
          />
          <text class="small" x={primary.x} y={primary.y + 4} text-anchor="middle">
            P
          </text>
        </g>
      ) : null}
      {workers.map((worker) => (
        <g key={worker.id}>
          <title>
            Worker {worker.id} of {id}
          </title>
          <circle class="worker" cx={worker.x} cy={worker.y} r="11" />
          <text class="small" x={worker.x} y={worker.y + 4} text-anchor="middle">
            {worker.id}
          </text>
        </g>
      ))}
    </g>
  )
}
