// A hint says that a pop may find something. It can be lost, duplicated or late. Acting on a hint must cost
// no more than one check.

export const hintKinds = [
  'EVERYTHING', // more changes than fit: check everything
  'MESSAGE_AVAILABLE',
  'PARTITION_FREE',
  'SCHEDULED',
  'QUEUE_CONFIG_CHANGED',
] as const

export type HintKind = (typeof hintKinds)[number]

export interface Hint {
  readonly kind: HintKind
  /** The subject of the hint, for example a queue. */
  readonly scope: string
  /** Absent: any part of the scope. */
  readonly part?: string | undefined
  /** How many; hints that are merged add up. */
  readonly count: number
  /** For SCHEDULED the due time, merged to the minimum. Otherwise for example a version, merged to the
   * maximum. */
  readonly value?: number | undefined
  /** Passed on unchanged. Absent: not known. Hints with different labels are not merged. */
  readonly labels?: HintLabels | undefined
}

export type HintLabels = readonly (string | null)[]

export interface OutgoingHint extends Hint {
  /** A peer gets the hint if it is interested in one of these keys. Absent: every peer gets it. */
  readonly keys?: readonly string[] | undefined
}

export const hintLimits = { nameBytesMax: 255, labelsMax: 4 } as const
