// Whether the cluster answers, and which other addresses it has.
import { nowMs } from '../clock.ts'
import { Store } from './store.ts'

export interface Connection {
  /** Undefined while requests are answered. */
  readonly lostAtMs: number | undefined
}

export const connection = new Store<Connection>({ lostAtMs: undefined })

export function connectionWorks(): void {
  if (connection.value.lostAtMs !== undefined) connection.set({ lostAtMs: undefined })
}

export function connectionFailed(): void {
  if (connection.value.lostAtMs === undefined) connection.set({ lostAtMs: nowMs() })
}

/**
 * The addresses of all nodes, as last read. They are offered when the address of the page does not answer.
 */
export const nodeUrls = new Store<ReadonlyMap<string, string>>(new Map())
