import { LatencyHistogram } from './latency-histogram.ts'
import { type GrantSource, type WakeSource, wakeSources } from './ports.ts'

/** What happened since the start, for `/stats` and metrics. */
export class WakeCounters {
  readonly wakes = bySource(() => 0)
  /** From the news to the end of the pop that found messages. */
  readonly latencies = bySource(() => new LatencyHistogram())
  /** First queries of new waiters. */
  requests = 0
  /** Hints that met a pop in flight and made it be followed by another. */
  dirtied = 0
  /** Grants that no worker took in time. */
  deliveryTimeouts = 0
  /** Pops that did not end in time. */
  popTimeouts = 0
  /** Releases, and answers, of grants that had been taken back. */
  late = 0
  contended = 0
  /** Waits that were refused because too many groups are tracked. */
  refusedGroups = 0
  fallbackChecks = 0
  /** Groups whose work a fallback check found before any hint told of it. */
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
