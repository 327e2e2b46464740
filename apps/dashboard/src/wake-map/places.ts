// Where nodes, their primaries and their workers are on the map.
import type { NodeStats, Unreachable } from '../api/answers.ts'

export interface Point {
  readonly x: number
  readonly y: number
}

export interface WorkerPlace extends Point {
  readonly id: number
}

export interface Place extends Point {
  readonly id: string
  readonly width: number
  readonly height: number
  readonly primary: Point
  readonly workers: readonly WorkerPlace[]
  readonly isAlive: boolean
  readonly mode: string
  readonly waiting: number
  /** Peers that this node cannot reach by gossip. */
  readonly silent: readonly string[]
}

const box = { width: 196, height: 104 }
const gap = 8
const workersShown = 6
const workerStepMax = 34
const rowPx = 120

export function sizeOf(
  isNarrow: boolean,
  nodes: number,
): { readonly width: number; readonly height: number } {
  if (isNarrow) return { width: 360, height: Math.max(1, nodes) * rowPx }
  if (nodes <= 2) return { width: 900, height: rowPx }
  return { width: 900, height: nodes === 3 ? 260 : nodes === 4 ? 350 : 440 }
}

/** On an ellipse that fills the map; on a narrow screen below each other, shifted so that lines do not cover boxes. */
export function placeNodes(
  nodes: readonly NodeStats[],
  unreachable: readonly Unreachable[],
  isNarrow: boolean,
): Place[] {
  const ids = [...nodes.map(({ node }) => node), ...unreachable.map(({ id }) => id)].toSorted()
  const size = sizeOf(isNarrow, ids.length)
  const points = isNarrow ? onZigzag(ids.length, size.width) : onEllipse(ids.length, size)
  return ids.map((id, i) => {
    const stats = nodes.find(({ node }) => node === id)
    return placeOf(id, points[i] as Point, stats)
  })
}

function onZigzag(length: number, width: number): Point[] {
  const shift = width / 2 - box.width / 2 - 4
  return Array.from({ length }, (_, i) => ({
    x: width / 2 + (i % 2 === 0 ? -shift : shift),
    y: rowPx / 2 + i * rowPx,
  }))
}

function onEllipse(length: number, { width, height }: { width: number; height: number }): Point[] {
  // Two nodes are beside each other, more begin at the top.
  const startAt = length === 2 ? Math.PI : -Math.PI / 2
  const angles = Array.from({ length }, (_, i) => startAt + (i / length) * 2 * Math.PI)
  const heights = angles.map(Math.sin)
  const [top, bottom] = [Math.min(...heights), Math.max(...heights)]
  const spread = Math.max(bottom - top, 0.001)
  const room = height - box.height - 2 * gap
  return angles.map((angle, i) => ({
    x: width / 2 + (length === 1 ? 0 : Math.cos(angle) * (width / 2 - box.width / 2 - gap)),
    y:
      length <= 2 ? height / 2 : gap + box.height / 2 + (((heights[i] ?? 0) - top) / spread) * room,
  }))
}

function placeOf(id: string, { x, y }: Point, stats: NodeStats | undefined): Place {
  const ids = Object.keys(stats?.waiting.by_worker ?? {})
    .map(Number)
    .slice(0, workersShown)
  const step = Math.min(workerStepMax, 140 / Math.max(ids.length, 1))
  const row = y - 10
  return {
    id,
    x,
    y,
    ...box,
    primary: { x: x - box.width / 2 + 26, y: row },
    workers: ids.map((worker, i) => ({
      id: worker,
      x: x + 18 + (i - (ids.length - 1) / 2) * step,
      y: row,
    })),
    isAlive: stats !== undefined,
    mode: stats?.mode.mode ?? 'unknown',
    waiting: stats?.waiting.total ?? 0,
    silent: (stats?.peers ?? [])
      .filter(({ state, hearsUs }) => state !== 'left' && (state !== 'alive' || hearsUs === false))
      .map(({ id: peer }) => peer),
  }
}

/** Where the line from one node to another leaves the box of the first. */
export function edgeOf(from: Place, to: Point): Point {
  const [dx, dy] = [to.x - from.x, to.y - from.y]
  const sides = [from.width / 2 / Math.abs(dx), from.height / 2 / Math.abs(dy)]
  const part = Math.min(...sides, 1)
  return { x: from.x + dx * part, y: from.y + dy * part }
}
