import { LatencyHistogram } from './latency-histogram.ts'
import { type GrantSource, type WakeSource, wakeSources } from './ports.ts'

/** Counters since the start, for `/stats` and metrics. */
export class WakeCounters {
  readonly wakes = bySource(() => 0)
  /** From the hint to the end of the pop that found messages. */
  readonly latencies = bySource(() => new LatencyHistogram())
  /** First queries of new waiters. */
  requests = 0
  /** Hints that arrived during a pop and caused another. */
  dirtied = 0
  /** Grants that no worker took in time. */
  deliveryTimeouts = 0
  /** Pops that did not end in time. */
  popTimeouts = 0
  /** Releases and confirmations of grants that had been taken back. */
  late = 0
  contended = 0
  /** Waiters refused because the group table was full. */
  refusedGroups = 0
  fallbackChecks = 0
  /** Groups whose work a fallback poll found before any hint. */
  unannounced = 0

  granted(source: GrantSource): void {
    if (source === 'request') this.requests += 1
    else this.wakes[source] += 1
  }

  found(source: GrantSource, afterMs: number): void {
    if (source !== 'request') this.latencies[source].record(afterMs)
  }
}

function bySource<T>(make: () => T): Record<WakeSource, T> {
  const entries = wakeSources.map((source) => [source, make()])
  return Object.fromEntries(entries) as Record<WakeSource, T>
}
