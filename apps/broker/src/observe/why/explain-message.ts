// Why one message took as long as it did: turns what nodes recorded and what the database knows into spans with one
// cause each, and names the longest. Times are ms since 1970 by the clock of the database.
import type { MessageCause } from '@rouse/protocol'
import type { MessageInGroup, PartitionHold, QueueFacts } from '@rouse/storage'
import { readHolder } from '../../holder.ts'
import type { Hold } from './join-acks.ts'
import { Spans } from './spans.ts'
import type { DeliveryRecord, LimitRecord, NodeTraces, PushRecord } from './trace-record.ts'

export interface MessageFacts {
  readonly nowMs: number
  readonly createdAtMs: number
  /** When it entered the log; null if it has not. */
  readonly enteredAtMs: number | null
  readonly dueAtMs: number | null
  readonly cancelledAtMs: number | null
  /** Whether a message before it in its partition can keep it waiting. */
  readonly isOrdered: boolean
  readonly seq: number | null
  /** The state of the message in the explained group; undefined if no group has it. */
  readonly group: MessageInGroup | undefined
  readonly push: PushRecord | undefined
  /** The deliveries to that group, oldest first. */
  readonly deliveries: readonly DeliveryRecord[]
  readonly holds: readonly Hold[]
  readonly storedHolds: readonly PartitionHold[]
  readonly limits: readonly LimitRecord[]
  readonly pauses: NodeTraces['pauses']
  readonly queue: QueueFacts | undefined
  /** Why nothing is delivered to the group now. */
  readonly reason: { readonly code: string; readonly text: string } | undefined
}

export interface Cause {
  readonly cause: MessageCause
  readonly text: string
  readonly facts?: Readonly<Record<string, unknown>>
}

export interface CausedSpan extends Cause {
  readonly fromMs: number
  readonly toMs: number
}

export function explainMessage(facts: MessageFacts): CausedSpan[] {
  const fromMs = facts.createdAtMs - (facts.push?.ms ?? 0)
  const spans = new Spans<Cause>(fromMs, endOf(facts))
  spans.claim(fromMs, facts.createdAtMs, { cause: 'push_slow', text: 'the push, until its commit' })
  claimScheduled(spans, facts)
  claimAttempts(spans, facts)
  claimPauses(spans, facts)
  claimHolds(spans, facts)
  for (const limit of facts.limits) {
    const text = 'a rate of the queue withheld messages'
    spans.claim(limit.fromMs, limit.toMs, { cause: 'rate_limit', text })
  }
  claimNotStarted(spans, facts)
  claimUnknownHolds(spans, facts)
  claimWaiting(spans, facts)
  spans.claimRest({ cause: 'unknown', text: 'not recorded: what happened to it' })
  return merged(spans.all().map(({ cause, ...span }) => ({ ...span, ...cause })))
}

/** The ack, or now if the message is not finished. */
export function endOf(facts: MessageFacts): number {
  const { nowMs, group, deliveries, createdAtMs, enteredAtMs, cancelledAtMs } = facts
  if (cancelledAtMs !== null) return cancelledAtMs
  if (group?.status !== 'completed' && group?.status !== 'dead') return nowMs
  const acks = deliveries.map(({ poppedAtMs, ackedMs, answeredMs }) => {
    return poppedAtMs + (ackedMs ?? answeredMs ?? 0)
  })
  const ends = group.history.map(({ endedAt }) => endedAt)
  const storedEnd = group.completedAt ?? createdAtMs
  return Math.max(createdAtMs, enteredAtMs ?? createdAtMs, storedEnd, ...acks, ...ends)
}

function claimScheduled(spans: Spans<Cause>, facts: MessageFacts): void {
  const { createdAtMs, enteredAtMs, dueAtMs, nowMs } = facts
  const untilMs = enteredAtMs ?? (dueAtMs === null ? createdAtMs : Math.max(dueAtMs, nowMs))
  // The log has the time of the commit, which is a moment later than the id.
  if (enteredAtMs !== null && enteredAtMs - createdAtMs < 20) {
    spans.claim(createdAtMs, enteredAtMs, {
      cause: 'push_slow',
      text: 'the push, until its commit',
    })
    return
  }
  const text =
    enteredAtMs === null && dueAtMs !== null
      ? `delayed until ${new Date(dueAtMs).toISOString()}`
      : 'delayed by its producer, or by the queue'
  spans.claim(createdAtMs, untilMs, { cause: 'scheduled', text })
}

/** The times in which a consumer had the message, and those before its retries. */
function claimAttempts(spans: Spans<Cause>, { deliveries, group, nowMs }: MessageFacts): void {
  const ended = group?.history ?? []
  for (const { attempt, holder, deliveredAt, endedAt, outcome, errorCode } of ended) {
    const who = nameOf(holder)
    const end = outcome === 'expired' ? 'until its lease expired' : `until it ended as ${outcome}`
    const text = `attempt ${attempt} by ${who}, ${end}`
    const facts = { attempt, consumer: who, errorCode }
    spans.claim(deliveredAt ?? endedAt, endedAt, { cause: 'slow_consumer', text, facts })
  }
  for (const { attempt, holder, poppedAtMs, ackedMs, status } of deliveries) {
    const who = nameOf(holder)
    const facts = { attempt, consumer: who }
    const text = `attempt ${attempt} by ${who}, until the ack${status === null ? '' : ` (${status})`}`
    if (ackedMs !== null) {
      spans.claim(poppedAtMs, poppedAtMs + ackedMs, { cause: 'slow_consumer', text, facts })
    } else if (group?.status === 'completed' && group.completedAt !== null) {
      spans.claim(poppedAtMs, group.completedAt, { cause: 'slow_consumer', text, facts })
    }
  }
  if (group?.status === 'leased' && group.deliveredAt !== null) {
    const who = nameOf(group.holder)
    const until = group.leaseExpiresAt
    const text = `${who} has it, attempt ${group.attempts}${until === null ? '' : `; its lease expires at ${new Date(until).toISOString()}`}`
    const facts = { attempt: group.attempts, consumer: who }
    spans.claim(group.deliveredAt, nowMs, { cause: 'slow_consumer', text, facts })
  }
  claimRetries(spans, { ended, group, deliveries, nowMs })
}

function claimRetries(
  spans: Spans<Cause>,
  {
    ended,
    group,
    deliveries,
    nowMs,
  }: Pick<MessageFacts, 'group' | 'deliveries' | 'nowMs'> & {
    readonly ended: MessageInGroup['history']
  },
): void {
  const begun = [
    ...deliveries.map(({ poppedAtMs }) => poppedAtMs),
    ...ended.map(({ deliveredAt, endedAt }) => deliveredAt ?? endedAt),
    ...(group?.status === 'leased' && group.deliveredAt !== null ? [group.deliveredAt] : []),
  ].sort((a, b) => a - b)
  for (const { attempt, endedAt } of ended) {
    const next = begun.find((ms) => ms > endedAt)
    if (next === undefined && group?.status !== 'retrying') continue
    const text = `waited for the retry after attempt ${attempt}`
    spans.claim(endedAt, next ?? nowMs, { cause: 'retry_delay', text, facts: { attempt } })
  }
}

function claimPauses(spans: Spans<Cause>, { pauses, queue, nowMs }: MessageFacts): void {
  let since: number | undefined
  for (const { atMs, paused } of pauses.toSorted((a, b) => a.atMs - b.atMs)) {
    if (paused) since ??= atMs
    else if (since !== undefined) {
      spans.claim(since, atMs, { cause: 'paused', text: 'the queue was paused' })
      since = undefined
    }
  }
  if (queue?.paused !== true) return
  const text = 'the queue is paused'
  spans.claim(since ?? Number.NEGATIVE_INFINITY, nowMs, { cause: 'paused', text })
}

/** Other messages of the partition: leased, or waiting for their own retry. */
function claimHolds(spans: Spans<Cause>, facts: MessageFacts): void {
  if (facts.seq === null || !facts.isOrdered) return
  const firstDeliveryMs = facts.deliveries[0]?.poppedAtMs ?? facts.nowMs
  const seq = facts.seq
  for (const { id, seq: other, attempt, holder, poppedAtMs, heldUntilMs } of facts.holds) {
    const toMs = Math.min(heldUntilMs, firstDeliveryMs)
    spans.claim(poppedAtMs, toMs, heldBy(other, attempt, holder, { id }))
  }
  const stored = facts.storedHolds.toSorted((a, b) => a.fromMs - b.fromMs)
  for (const [i, hold] of stored.entries()) {
    const { seq: other, attempt, holder, fromMs, toMs, outcome, errorCode, retryAtMs } = hold
    const cause = heldBy(other, attempt, holder, { errorCode })
    spans.claim(fromMs, Math.min(toMs ?? facts.nowMs, firstDeliveryMs), cause)
    if (toMs === null || outcome === 'dlq' || other === seq) continue
    const again = stored.slice(i + 1).find((one) => one.seq === other)?.fromMs
    // If the database has no later attempt, that message was completed, and this one was next.
    const until = again ?? (retryAtMs === null ? firstDeliveryMs : facts.nowMs)
    const error = errorCode === null ? '' : ` (${errorCode})`
    const text = `partition held by message ${other}, which waits for its retry after attempt ${attempt}${error}`
    const end = Math.min(until, firstDeliveryMs)
    spans.claim(toMs, end, { ...cause, text })
  }
}

function heldBy(
  seq: number,
  attempt: number,
  holder: string | null,
  more: Readonly<Record<string, unknown>>,
): Cause {
  const consumer = nameOf(holder)
  const text = `partition held by message ${seq}, attempt ${attempt}, consumer ${consumer}`
  return { cause: 'partition_held', text, facts: { seq, attempt, consumer, ...more } }
}

/**
 * The time before the pop that got the message began to wait. Another pop may have waited, if a hold is not
 * recorded.
 */
function claimNotStarted(spans: Spans<Cause>, { deliveries }: MessageFacts): void {
  const text = 'no consumer was waiting: none was connected, or all were busy'
  for (const { enteredAtMs, ...delivery } of deliveries) {
    spans.claim(enteredAtMs, waitingSinceMs(delivery), { cause: 'no_consumer', text })
  }
}

function waitingSinceMs({
  poppedAtMs,
  popMs,
  waitedMs,
}: Pick<DeliveryRecord, 'poppedAtMs' | 'popMs' | 'waitedMs'>): number {
  return poppedAtMs - popMs - waitedMs
}

/**
 * A pop waited, and another message of the partition was leased before, but when its lease ended is not recorded. A
 * partition has one lease at a time, so only the last one before the delivery matters.
 */
function claimUnknownHolds(
  spans: Spans<Cause>,
  { deliveries, holds, isOrdered }: MessageFacts,
): void {
  if (!isOrdered) return
  for (const delivery of deliveries) {
    const hintedAtMs = delivery.poppedAtMs - delivery.popMs - delivery.hintMs
    const last = holds.filter(({ poppedAtMs }) => poppedAtMs < delivery.poppedAtMs).at(-1)
    if (last === undefined || last.isEnded || last.expiresAtMs < delivery.enteredAtMs) continue
    const { seq, attempt, holder, heldUntilMs } = last
    const who = `message ${seq}, attempt ${attempt}, consumer ${nameOf(holder)}`
    const text = `not recorded: when ${who}, left the partition`
    spans.claim(heldUntilMs, hintedAtMs, { cause: 'unknown', text })
  }
}

/** What is left before a delivery, while its pop waited: a limit, a lost hint, or the wake-up itself. */
function claimWaiting(spans: Spans<Cause>, facts: MessageFacts): void {
  const { deliveries, queue, group, reason } = facts
  for (const delivery of deliveries) {
    const { poppedAtMs, popMs, hintMs, source, enteredAtMs } = delivery
    const text =
      source === 'push' ? 'stored and delivered in one call' : `the wake-up (${source}) and the pop`
    const cause: Cause = { cause: 'delivery', text, facts: { source } }
    spans.claim(Math.max(enteredAtMs, poppedAtMs - popMs - hintMs), poppedAtMs, cause)
    const restMs = spans.freeMs(enteredAtMs, poppedAtMs)
    const limit = (queue?.inFlightMax ?? 0) || (queue?.partitionInFlightMax ?? 0)
    // Nothing else can withhold an independent message: the rest is the way of the hint.
    const isFree = !facts.isOrdered && limit === 0 && source !== 'fallback'
    if (restMs < noticedMs || isFree) spans.claim(enteredAtMs, poppedAtMs, cause)
    else if (limit > 0) {
      const most = `no other cause is recorded, and the queue allows at most ${limit} messages at a time (maxInFlight)`
      spans.claim(enteredAtMs, poppedAtMs, { cause: 'in_flight_limit', text: most })
    } else if (source === 'fallback') {
      const late = 'a consumer was waiting, but no hint came: a fallback poll found the message'
      spans.claim(enteredAtMs, poppedAtMs, { cause: 'late_wake', text: late, facts: { source } })
    } else {
      const unknown = 'not recorded: what withheld it while a consumer waited'
      spans.claim(enteredAtMs, poppedAtMs, { cause: 'unknown', text: unknown })
    }
  }
  const isWaiting = group === undefined ? facts.enteredAtMs !== null : group.status === 'pending'
  if (isWaiting) spans.claimRest(causeNow(reason))
}

const noticedMs = 20

/** Why a message that no consumer has got yet is not delivered. */
function causeNow(reason: MessageFacts['reason']): Cause {
  const text = reason?.text ?? 'it is ready'
  return { cause: causesNow[reason?.code ?? ''] ?? 'waiting', text }
}

const causesNow: Readonly<Record<string, MessageCause>> = {
  paused: 'paused',
  in_flight_limit: 'in_flight_limit',
  partition_in_flight_limit: 'in_flight_limit',
  rate_limit: 'rate_limit',
  partition_rate_limit: 'rate_limit',
  held_lane: 'partition_held',
  all_leased: 'partition_held',
  gathering: 'window_buffer',
  no_consumers: 'no_consumer',
}

/** Neighbours with the same cause become one span. */
function merged(spans: readonly CausedSpan[]): CausedSpan[] {
  const result: CausedSpan[] = []
  for (const span of spans) {
    const last = result.at(-1)
    if (last !== undefined && last.cause === span.cause && last.text === span.text) {
      result[result.length - 1] = { ...last, toMs: span.toMs }
    } else result.push(span)
  }
  return result
}

/** The name that a consumer gave itself, or the worker that delivered to it. */
export function nameOf(stored: string | null): string {
  const { holder, consumer } = readHolder(stored)
  return consumer ?? holder ?? 'unknown'
}
