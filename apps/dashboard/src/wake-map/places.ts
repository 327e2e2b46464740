// Where nodes and workers are on the map.
import type { NodeStats, Unreachable } from '../api/answers.ts'

export interface WorkerPlace {
  readonly id: number
  readonly x: number
  readonly y: number
}

export interface Place {
  readonly id: string
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
  readonly workers: readonly WorkerPlace[]
  readonly isAlive: boolean
  readonly mode: string
  readonly waiting: number
  /** Peers that this node cannot reach by gossip. */
  readonly silent: readonly string[]
}

const box = { width: 176, height: 100 }
const workersShown = 7
const workerStep = 22

export function sizeOf(
  isNarrow: boolean,
  nodes: number,
): { readonly width: number; readonly height: number } {
  return isNarrow
    ? { width: 360, height: Math.max(2, nodes) * 120 }
    : { width: 900, height: nodes > 4 ? 440 : 320 }
}

/** On an ellipse; on a narrow screen below each other, shifted so that lines do not cover boxes. */
export function placeNodes(
  nodes: readonly NodeStats[],
  unreachable: readonly Unreachable[],
  isNarrow: boolean,
): Place[] {
  const ids = [...nodes.map(({ node }) => node), ...unreachable.map(({ id }) => id)].toSorted()
  const { width, height } = sizeOf(isNarrow, ids.length)
  return ids.map((id, i) => {
    const angle = (i / ids.length) * 2 * Math.PI - Math.PI / 2
    const x = isNarrow
      ? width / 2 + (i % 2 === 0 ? -1 : 1) * (width / 2 - box.width / 2 - 4)
      : width / 2 + Math.cos(angle) * (width / 2 - box.width / 2 - 10)
    const y = isNarrow
      ? 60 + i * 120
      : height / 2 + Math.sin(angle) * (height / 2 - box.height / 2 - 8)
    return placeOf(
      id,
      { x, y },
      nodes.find(({ node }) => node === id),
    )
  })
}

function placeOf(
  id: string,
  { x, y }: { x: number; y: number },
  stats: NodeStats | undefined,
): Place {
  const ids = Object.keys(stats?.waiting.by_worker ?? {})
    .map(Number)
    .slice(0, workersShown)
  return {
    id,
    x,
    y,
    ...box,
    workers: ids.map((worker, i) => ({
      id: worker,
      x: x + (i - (ids.length - 1) / 2) * workerStep,
      y: y - 8,
    })),
    isAlive: stats !== undefined,
    mode: stats?.mode.mode ?? 'unknown',
    waiting: stats?.waiting.total ?? 0,
    silent: (stats?.peers ?? [])
      .filter(({ state, hearsUs }) => state !== 'left' && (state !== 'alive' || hearsUs === false))
      .map(({ id: peer }) => peer),
  }
}
