// The messages between the harness and its client processes.
import type { ClientUrls } from './chaos-client.ts'

export interface ClientJob {
  readonly clients: readonly {
    readonly workload: string
    readonly name: string
    readonly rate: number
  }[]
  /** How often these clients were started before: a restarted client gets a new name. */
  readonly generation: number
  readonly seed: number
  readonly urls: ClientUrls
  readonly historyFile: string
}

export interface ClientCounts {
  /** Messages of ok pushes, transactions included. */
  pushed: number
  /** The number of these messages per workload. */
  pushedTo: Record<string, number>
  popped: number
  /** Calls that failed or whose outcome is unknown. */
  notOk: number
}

export type ToClients =
  | { readonly kind: 'job'; readonly job: ClientJob }
  | { readonly kind: 'stop-producing' }
  | { readonly kind: 'stop' }

export type FromClients =
  | { readonly kind: 'counts'; readonly counts: ClientCounts }
  | { readonly kind: 'produced' }
