// A hint says that something may be worth a look. It may be lost, come twice or come late; acting on
// it must cost no more than one look.

export const hintKinds = [
  'EVERYTHING', // more happened than fits: look at everything
  'MESSAGE_AVAILABLE',
  'PARTITION_FREE',
  'SCHEDULED',
  'QUEUE_CONFIG_CHANGED',
] as const

export type HintKind = (typeof hintKinds)[number]

export interface Hint {
  readonly kind: HintKind
  /** What it is about, a queue for example. */
  readonly scope: string
  /** Absent: any part of it. */
  readonly part?: string | undefined
  /** How many; hints that are sent together are added up. */
  readonly count: number
  /** For SCHEDULED when it is due: the least stays. Else a version, say: the greatest stays. */
  readonly value?: number | undefined
  /** Passed on as they are. Absent: not known. Hints with different labels are not put together. */
  readonly labels?: HintLabels | undefined
}

export type HintLabels = readonly (string | null)[]

export interface OutgoingHint extends Hint {
  /** A peer gets the hint if it is interested in one of these. Absent: every peer gets it. */
  readonly keys?: readonly string[] | undefined
}

export const hintLimits = { nameBytesMax: 255, labelsMax: 4 } as const
