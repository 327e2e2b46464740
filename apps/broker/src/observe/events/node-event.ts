// What happens on a node, as `GET /api/v1/events` reports it. docs/events.md describes every event.

export const queueChanges = [
  'created',
  'configured',
  'paused',
  'resumed',
  'purged',
  'deleted',
] as const
export type QueueChange = (typeof queueChanges)[number]

export interface NodeEvent {
  /** Absent for events that are not repeated when a stream is resumed. */
  readonly id?: string
  readonly atMs: number
  readonly name: 'queue' | 'cluster' | 'wake'
  /** Null if the event is about no queue, or not about one alone. */
  readonly queue: string | null
  /** The fields of the event as JSON. */
  readonly json: string
}

/** Events since a time, and whether some before them are gone. */
export interface PastEvents {
  readonly events: readonly NodeEvent[]
  readonly missing: 'too_old' | 'restarted' | null
}

/** Ids begin with the time, so that an id of one node has a meaning on another. */
export function eventId(atMs: number, number: number, node: string): string {
  return `${atMs}-${number}-${node}`
}

/** Undefined if this is not an id of an event. */
export function timeOfEventId(id: string): number | undefined {
  const [, time] = /^(\d{12,15})-\d+-./s.exec(id) ?? []
  return time === undefined ? undefined : Number(time)
}

/** Clocks of nodes differ, and an event needs some time from one node to another. */
export const overlapMs = 5_000
