import { presets } from '../../src/index.ts'
import type { MeasurementsResult } from './seed-process.ts'

/** The bytes of a heartbeat, including UDP and IP headers and a share of all other messages. */
const bytesPerHeartbeat = 165
/** In heartbeat intervals: a node is dead after 10, and detected at the next check. */
const crashAfter = 11

/**
 * Returns the targets that an idle cluster of this size misses. Ten nodes join in 300 ms, detect a crash in
 * 5.5 s, and send 3 kB per second. For a thousand nodes, whose heartbeat interval is 2 s, it is 300 ms, 22 s
 * and 82 kB.
 */
export function missedTargets(
  nodeCount: number,
  { measurements, wakes }: Pick<MeasurementsResult, 'measurements' | 'wakes'>,
): string[] {
  const { heartbeatMs, heartbeatPerNodeMs } = presets.lan
  const intervalMs = Math.max(heartbeatMs, heartbeatPerNodeMs * nodeCount)
  const heartbeatsPerSecond = ((nodeCount - 1) * 1_000) / intervalMs
  const lossy = wakes.filter(({ loss }) => loss === 0.3)
  const targets: readonly (readonly [string, number, number])[] = [
    ['coldStartMs', measurements.coldStartMs, 300],
    ['joinMs', measurements.joinMs, 300],
    ['leaveMs', measurements.leaveMs, 5],
    ['crashMs', measurements.crashMs, crashAfter * intervalMs],
    ['bytesPerSecond', measurements.bytesPerSecond, heartbeatsPerSecond * bytesPerHeartbeat],
    ...lossy.flatMap(({ spread, maxMs, within10Ms }) => [
      [`ms to the slowest wake-up at 30 % loss, spread ${spread}`, maxMs, 600] as const,
      [
        `share of wake-ups after 10 ms at 30 % loss, spread ${spread}`,
        1 - within10Ms,
        0.11,
      ] as const,
    ]),
  ]
  return targets
    .filter(([, value, most]) => !(value <= most))
    .map(([name, value, most]) => `${name} ${value.toFixed(2)}, target at most ${most.toFixed(2)}`)
}
