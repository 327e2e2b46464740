// A hint says that a pop may find something. It can be lost, duplicated or late. Acting on a hint must cost
// no more than one check.

export const hintKinds = [
  'EVERYTHING', // there were too many hints to send: check everything
  'MESSAGE_AVAILABLE',
  'PARTITION_FREE',
  'SCHEDULED',
  'QUEUE_CONFIG_CHANGED',
  'KEYS_CHANGED', // API keys were created or revoked: read them
] as const

export type HintKind = (typeof hintKinds)[number]

export interface Hint {
  readonly kind: HintKind
  /** The subject of the hint, for example a queue. */
  readonly scope: string
  /** Absent: any part of the scope. */
  readonly part?: string | undefined
  /** For example how many messages became available; 0: not known. Merged hints have the sum, or 0 if one of
   * them has. */
  readonly count: number
  /** For SCHEDULED the due time; merged hints have the earliest. For other kinds, for example, a version;
   * merged hints have the highest. */
  readonly value?: number | undefined
  /** Passed on unchanged. Absent: not known. Hints with different labels are not merged. */
  readonly labels?: HintLabels | undefined
}

export type HintLabels = readonly (string | null)[]

export interface OutgoingHint extends Hint {
  /** A peer gets the hint if it is interested in one of these scopes. Absent: every peer gets it. */
  readonly keys?: readonly string[] | undefined
  /** Only interest of this consumer group counts. Absent: of any. */
  readonly group?: string | undefined
  /** Consumer groups whose waiters on this node take the messages. Interest of these groups does not count. */
  readonly served?: ReadonlySet<string> | undefined
  /** `one`: for each consumer group that a peer is interested in, one peer gets the hint at once. The others
   * get it if that peer does not report it as settled in time. Absent: `all`. */
  readonly spread?: 'one' | 'all' | undefined
}

/** A hint in a datagram. */
export interface SentHint extends Hint {
  /** The receiver may report the hint as settled under this number. Older nodes ignore it. */
  readonly ask?: number | undefined
}

export const hintLimits = { nameBytesMax: 255, labelsMax: 4 } as const
