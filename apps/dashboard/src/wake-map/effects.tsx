import { useEffect, useRef } from 'preact/hooks'
import type { Place } from './places.ts'
import type { WakeStep } from './wake-events.ts'

const flightMs = 500
const slowFlightMs = 1_100

interface Point {
  readonly x: number
  readonly y: number
}

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
            return <Pulse key={step.key} at={worker} kind={step.step} durationMs={durationMs} />
          case 'hint_sent':
            return peer === undefined ? null : (
              <Flight
                key={step.key}
                from={node}
                to={peer}
                kind={step.repeat === true ? 'repeat' : 'hint'}
                durationMs={durationMs}
              />
            )
          case 'hint_lost':
            return peer === undefined ? null : (
              <Flight key={step.key} from={peer} to={node} kind="lost" durationMs={durationMs} />
            )
          case 'grant':
            return (
              <Flight
                key={step.key}
                from={{ x: node.x, y: node.y - node.height / 2 }}
                to={worker}
                kind="grant"
                durationMs={durationMs}
                label={isSlow ? msOf(step) : undefined}
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
            return <Pulse key={step.key} at={node} kind={step.step} durationMs={durationMs} />
        }
      })}
    </g>
  )
}

/** Only the newest time of a node is written, because there is room for one. */
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
  label,
}: {
  from: Point
  to: Point
  kind: string
  durationMs: number
  label?: string | undefined
}) {
  const dot = useRef<SVGGElement>(null)
  useEffect(() => {
    const end = kind === 'lost' ? { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 } : to
    dot.current?.animate(
      [
        { transform: `translate(${from.x}px, ${from.y}px)`, opacity: 1 },
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
      <g ref={dot} class={`flight ${kind}`}>
        <circle r="6" />
        {label === undefined ? null : (
          <text class="small" x="10" y="4">
            {label}
          </text>
        )}
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
        { transform: 'scale(2)', opacity: 0 },
      ],
      { duration: durationMs, fill: 'forwards' },
    )
  }, [])
  return (
    <g class={`pulse ${kind}`} transform={`translate(${at.x} ${at.y})`}>
      <circle ref={ring} r="10" />
      {label === undefined ? null : (
        <text class="small" y="25" text-anchor="middle">
          {label}
        </text>
      )}
    </g>
  )
}
