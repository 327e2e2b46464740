// Hints that wait for the next flush. Hints about the same subject are merged. A flush has four batches at
// most, each in a separate datagram. If the hints do not fit, their part and labels are omitted, so that each
// means any part of its scope. If they still do not fit, one EVERYTHING hint replaces them. No hint is
// dropped.

import { type Hint, type HintLabels, hintLimits, type OutgoingHint } from './hint.ts'
import { hintBytes } from './hint-codec.ts'
import { mergedRoute, type Route, routeOf } from './route.ts'

/** The size limit of one batch. With its frame and recipients it must fit into a datagram. */
export const batchBytesMax = 1_070
export const batchesPerFlushMax = 4

export interface PendingHint {
  /** Equal for hints that can be merged. */
  readonly identity: string
  readonly hint: Hint
  readonly route: Route
  readonly bytes: number
}

export class PendingHints {
  #hints = new Map<string, PendingHint>()
  #isEverything = false
  #batchCount = 1
  #lastBatchBytes = 0

  add(pending: PendingHint): void {
    if (this.#isEverything) return
    this.#put(pending)
    if (this.#isOverfull) this.#widen()
    if (this.#isOverfull) this.#widenToEverything()
  }

  /** Takes all hints, in batches that each fit into a datagram. */
  take(): PendingHint[][] {
    const batches: PendingHint[][] = []
    let bytes = Number.POSITIVE_INFINITY
    for (const pending of this.#hints.values()) {
      bytes += pending.bytes
      if (bytes > batchBytesMax) {
        batches.push([])
        bytes = pending.bytes
      }
      batches.at(-1)?.push(pending)
    }
    this.#restart()
    return batches
  }

  get #isOverfull(): boolean {
    return this.#batchCount > batchesPerFlushMax
  }

  #put(pending: PendingHint): void {
    const known = this.#hints.get(pending.identity)
    if (known !== undefined) {
      const hint = merged(known.hint, pending.hint)
      const route = mergedRoute(known.route, pending.route)
      this.#hints.set(pending.identity, { ...known, hint, route })
      return
    }
    this.#hints.set(pending.identity, pending)
    this.#lastBatchBytes += pending.bytes
    if (this.#lastBatchBytes > batchBytesMax) {
      this.#batchCount += 1
      this.#lastBatchBytes = pending.bytes
    }
  }

  #widen(): void {
    const hints = this.#hints
    this.#restart()
    for (const { hint, route } of hints.values()) {
      const { kind, scope, count, value } = hint
      const wide = { kind, scope, count, value }
      this.#put({ identity: identityOf(wide), hint: wide, route, bytes: hintBytes(wide) })
    }
  }

  #widenToEverything(): void {
    this.#restart()
    this.#put(toPending({ kind: 'EVERYTHING', scope: '', count: 1 }))
    this.#isEverything = true
  }

  #restart(): void {
    this.#hints = new Map()
    this.#isEverything = false
    this.#batchCount = 1
    this.#lastBatchBytes = 0
  }
}

export function toPending(outgoing: OutgoingHint): PendingHint {
  const hint = fitted(outgoing)
  return {
    identity: identityOf(hint),
    hint,
    route: routeOf(outgoing),
    bytes: hintBytes(hint),
  }
}

/** Makes the hint valid, because receivers refuse a whole datagram for one bad field. Omits names that are
 * too long, which widens the hint. Rounds counts up and due times down to integers. */
function fitted(hint: Hint): Hint {
  const { kind, scope } = hint
  const count = whole(Math.ceil(hint.count)) ?? 1
  const value = hint.value === undefined ? undefined : whole(hint.value)
  if (!fits(scope)) return { kind: 'EVERYTHING', scope: '', count }
  const part = hint.part !== undefined && fits(hint.part) ? hint.part : undefined
  const labels = hint.labels !== undefined && fitTogether(hint.labels) ? hint.labels : undefined
  return { kind, scope, part, count, value, labels }
}

function fitTogether(labels: HintLabels): boolean {
  const bytes = labels.reduce((sum, label) => sum + Buffer.byteLength(label ?? ''), 0)
  return (
    labels.length <= hintLimits.labelsMax &&
    bytes <= 2 * hintLimits.nameBytesMax &&
    labels.every((label) => label === null || fits(label))
  )
}

function fits(name: string): boolean {
  return Buffer.byteLength(name) <= hintLimits.nameBytesMax
}

/** Undefined for NaN. */
function whole(number: number): number | undefined {
  if (Number.isNaN(number)) return undefined
  return Math.min(Math.max(0, Math.floor(number)), Number.MAX_SAFE_INTEGER)
}

function identityOf({ kind, scope, part, labels }: Hint): string {
  return JSON.stringify([kind, scope, part ?? null, labels ?? null])
}

function merged(a: Hint, b: Hint): Hint {
  const isKnown = a.count > 0 && b.count > 0
  const count = isKnown ? Math.min(a.count + b.count, Number.MAX_SAFE_INTEGER) : 0
  const pick = a.kind === 'SCHEDULED' ? Math.min : Math.max
  const value =
    a.value === undefined || b.value === undefined ? (a.value ?? b.value) : pick(a.value, b.value)
  return { ...a, count, value }
}
