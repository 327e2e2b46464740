import { type GrantSource, type WakeSource, wakeSources } from './ports.ts'

/** What happened since the start, for `/stats` and metrics. */
export class WakeCounters {
  readonly wakes = Object.fromEntries(wakeSources.map((source) => [source, 0])) as Record<
    WakeSource,
    number
  >
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
}
