// The steps of a wake-up as movements: a ring around a worker, a light around a node, a dot from one place to another.
import { useEffect, useRef } from 'preact/hooks'
import { edgeOf, type Place, type Point } from './places.ts'
import type { WakeStep } from './wake-events.ts'

const flightMs = 500
const slowFlightMs = 1_100
const still = matchMedia('(prefers-reduced-motion: reduce)')

/** The steps that are visible now, as movements. */
export function Effects({
  steps,
  places,
  isSlow,
}: {
  steps: readonly WakeStep[]
  places: readonly Place[]
  isSlow: boolean
}) {
  const byId = new Map(places.map((place) => [place.id, place]))
  const durationMs = isSlow ? slowFlightMs : flightMs
  return (
    <g>
      {steps.map((step) => {
        const node = byId.get(step.node)
        if (node === undefined) return null
        const worker = node.workers.find(({ id }) => id === step.worker) ?? node
        const peer = byId.get(step.to ?? step.from ?? '')
        switch (step.step) {
          case 'push':
          case 'free':
            return (
              <g key={step.key}>
                <Light at={node} kind={step.step} durationMs={durationMs} />
                <Pulse at={worker} kind={step.step} durationMs={durationMs} />
              </g>
            )
          case 'hint_sent':
            return peer === undefined ? null : (
              <Flight
                key={step.key}
                from={edgeOf(node, peer)}
                to={edgeOf(peer, node)}
                kind={step.repeat === true ? 'repeat' : 'hint'}
                durationMs={durationMs}
              />
            )
          case 'hint_lost':
            return peer === undefined ? null : (
              <Flight
                key={step.key}
                from={edgeOf(peer, node)}
                to={edgeOf(node, peer)}
                kind="lost"
                durationMs={durationMs}
              />
            )
          case 'grant':
            return (
              <Flight
                key={step.key}
                from={node.primary}
                to={worker}
                kind="grant"
                durationMs={durationMs}
              />
            )
          case 'found':
          case 'empty':
            return (
              <Pulse
                key={step.key}
                at={worker}
                kind={step.step}
                durationMs={durationMs}
                label={step === lastOf(steps, step) ? msOf(step) : undefined}
              />
            )
          default:
            return <Light key={step.key} at={node} kind={step.step} durationMs={durationMs} />
        }
      })}
    </g>
  )
}

/** There is room for one time beside each node, so only the newest one is shown. */
function lastOf(steps: readonly WakeStep[], { node }: WakeStep): WakeStep | undefined {
  return steps.findLast((one) => one.node === node && one.step === 'found')
}

function msOf({ ms }: WakeStep): string | undefined {
  return ms === undefined ? undefined : `${ms.toFixed(1)} ms`
}

function Flight({
  from,
  to,
  kind,
  durationMs,
}: {
  from: Point
  to: Point
  kind: string
  durationMs: number
}) {
  const dot = useRef<SVGGElement>(null)
  useEffect(() => {
    const end = kind === 'lost' ? { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 } : to
    // Without motion, the dot appears where it would arrive.
    const start = still.matches ? end : from
    dot.current?.animate(
      [
        { transform: `translate(${start.x}px, ${start.y}px)`, opacity: 1 },
        { transform: `translate(${end.x}px, ${end.y}px)`, opacity: 1, offset: 0.85 },
        { transform: `translate(${end.x}px, ${end.y}px)`, opacity: 0 },
      ],
      { duration: durationMs, fill: 'forwards' },
    )
  }, [])
  return (
    <>
      {kind === 'lost' ? (
        <line class="lost-line" x1={from.x} y1={from.y} x2={to.x} y2={to.y} />
      ) : null}
      <g ref={dot} class={`flight ${kind}`} style={{ opacity: 0 }}>
        <circle r="6" />
      </g>
    </>
  )
}

function Pulse({
  at,
  kind,
  durationMs,
  label,
}: {
  at: Point
  kind: string
  durationMs: number
  label?: string | undefined
}) {
  const ring = useRef<SVGCircleElement>(null)
  useEffect(() => {
    ring.current?.animate(
      [
        { transform: 'scale(1)', opacity: 1 },
        { transform: still.matches ? 'scale(1)' : 'scale(1.9)', opacity: 0 },
      ],
      { duration: durationMs, fill: 'forwards' },
    )
  }, [])
  return (
    <g class={`pulse ${kind}`} transform={`translate(${at.x} ${at.y})`}>
      <circle ref={ring} r="11" />
      {label === undefined ? null : (
        <text class="small" y="27" text-anchor="middle">
          {label}
        </text>
      )}
    </g>
  )
}

/** The frame of a node lights up. */
function Light({ at, kind, durationMs }: { at: Place; kind: string; durationMs: number }) {
  const frame = useRef<SVGRectElement>(null)
  useEffect(() => {
    frame.current?.animate([{ opacity: 1 }, { opacity: 0 }], {
      duration: durationMs,
      fill: 'forwards',
    })
  }, [])
  const { x, y, width, height } = at
  return (
    <rect
      ref={frame}
      class={`light ${kind}`}
      x={x - width / 2}
      y={y - height / 2}
      width={width}
      height={height}
      rx="8"
    />
  )
}
