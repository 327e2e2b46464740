// What the nodes answer, as far as the pages read it.
import type {
  AuditAnswer,
  DeadLetter,
  GroupFigures,
  Key,
  MessageByIdAnswer,
  MessagesAnswer,
  QueueFigures,
  Redrive,
  RedrivePlan,
  Schedule,
  SeriesAnswer,
  StatsAnswer,
  WhyAnswer,
} from '@rouse/protocol'

export type {
  AuditAnswer,
  DeadLetter,
  GroupFigures,
  Key,
  MessageByIdAnswer,
  MessagesAnswer,
  QueueFigures,
  Redrive,
  RedrivePlan,
  Schedule,
  SeriesAnswer,
  WhyAnswer,
}

export interface Peer {
  readonly id: string
  readonly state: string
  readonly url?: string | null
  readonly hearsUs?: boolean
  readonly heardAgoMs?: number
  readonly wroteAgoMs?: number | null
  readonly rttMs?: number | null
  readonly hintsSent?: number
  readonly hintsReceived?: number
  readonly hintsMissed?: number
}

export type NodeStats = StatsAnswer & {
  readonly url?: string
  readonly version?: string
  readonly peers: readonly Peer[]
  readonly gossip: Readonly<Record<string, unknown>>
  readonly worker_restarts: number
  readonly requests: number
  readonly database_up: boolean
  /** Set while the database is a copy that was not adopted. */
  readonly copy_of?: { readonly database: string } | null
  readonly ipc: Readonly<Record<string, number>>
  readonly time: Readonly<Record<string, unknown>>
}

export interface Unreachable {
  readonly id: string
  readonly url?: string | null
  readonly state: string
  readonly error: string
}

export interface ClusterStats {
  /** The node that answered. */
  readonly node: string
  readonly nodes: readonly NodeStats[]
  readonly unreachable: readonly Unreachable[]
  readonly totals: {
    readonly nodes: number
    readonly waiting: number
    readonly requests: number
    readonly wakes: Readonly<Record<string, number>>
    readonly queries_per_second: Readonly<Record<string, number>>
  }
}

export interface ErrorGroup {
  readonly queue: string
  readonly consumerGroup: string
  readonly errorCode: string | null
  readonly errorMessage: string | null
  readonly count: number
  readonly firstFailedAt: string
  readonly lastFailedAt: string
}

export type Letter = DeadLetter & { readonly letterId: string }

export interface MessageWhy {
  readonly consumerGroup: string
  readonly state: string
  readonly totalMs: number
  readonly summary: string
  readonly culprit: {
    readonly cause: string
    readonly ms: number
    readonly text: string
    readonly action: string | null
  } | null
  readonly spans: readonly {
    readonly cause: string
    readonly ms: number
    readonly text: string
    readonly from: string
  }[]
  readonly steps: readonly {
    readonly step: string
    readonly at: string
    readonly ms: number
    readonly node: string | null
    readonly worker: number | null
    readonly text: string
  }[]
  readonly recorded: 'full' | 'partly' | 'none'
  readonly notRecorded: readonly { readonly step: string; readonly text: string }[]
}
