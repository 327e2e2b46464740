// The counts of a queue, as workers report them to their primary and as the primary adds them up.

/** In the order in which their counts are sent. */
export const countedFields = [
  /** Messages that entered the queue. Those with a delay enter when they are due. */
  'pushed',
  /** Messages that were pushed with a delay. */
  'scheduled',
  'duplicates',
  /** Messages given to consumers, first and later attempts. */
  'delivered',
  /** Those of them that were not first attempts. */
  'redelivered',
  'completed',
  /** Attempts that ended as `failed`, `retry` or `dlq`. */
  'failed',
  'retried',
  'buried',
  /** Messages that became dead letters: by an ack, whatever its status, or because the lease expired on the last attempt. */
  'deadLettered',
  /** Refused acks: the lease was lost. */
  'staleAcks',
] as const
export type CountedField = (typeof countedFields)[number]

/** Counts by position in `countedFields`. */
export type Counts = number[]

/** The counts of a queue since the last report. */
export type QueueCounts = readonly [queue: string, counts: Counts]

const at = Object.fromEntries(countedFields.map((field, i) => [field, i])) as Record<
  CountedField,
  number
>

export function noCounts(): Counts {
  return countedFields.map(() => 0)
}

export function add(counts: Counts, field: CountedField, count: number): void {
  counts[at[field]] = (counts[at[field]] ?? 0) + count
}

export function countOf(counts: Readonly<Counts>, field: CountedField): number {
  return counts[at[field]] ?? 0
}

export function addAll(counts: Counts, others: Readonly<Counts>): void {
  for (let i = 0; i < countedFields.length; i += 1) counts[i] = (counts[i] ?? 0) + (others[i] ?? 0)
}

export function sumOf(counts: Readonly<Counts>): number {
  return counts.reduce((sum, count) => sum + count, 0)
}
