// Explains why nothing is delivered: turns facts into sentences, the likeliest reason first.
import type { WhyReason } from '@rouse/protocol'
import type { GroupFacts, HeldKey, HeldLane, IdleFacts, Original, QueueFacts } from '@rouse/storage'
import { readHolder } from '../holder.ts'

export interface WhyOptions {
  readonly queue: string
  /** The number of waiters of this consumer group, on all nodes that answered. */
  readonly waitingFor: (group: string) => number
  /** A group without requests for this long no longer delays retention. 0 disables this. */
  readonly idleGroupMs: number
}

/** `action` is a request that helps to solve the problem, if there is one. */
type Reason = WhyReason & Readonly<Record<string, unknown>>

export function explain(facts: QueueFacts, options: WhyOptions): Reason[] {
  const { queue } = options
  const reasons: Reason[] = []
  if (facts.paused) {
    const text = 'The queue is paused: nothing is delivered until it is resumed.'
    const action = `POST /api/v1/queues/${encodeURIComponent(queue)}/resume`
    reasons.push({ code: 'paused', text, action })
  }
  if (facts.sizeMax > 0 && facts.size !== null && facts.size >= facts.sizeMax) {
    const { size, sizeMax } = facts
    const text = `The queue is full, ${size} of ${sizeMax} (maxSize): pushes are refused with 429 until consumers catch up.`
    reasons.push({ code: 'size_limit', text, size, sizeMax })
  }
  for (const group of facts.groups) {
    const ofGroup = { consumerGroup: group.consumerGroup }
    for (const reason of explainGroup(group, facts, options)) {
      reasons.push({ ...reason, ...ofGroup })
    }
  }
  reasons.push(...explainQueue(facts, reasons, options))
  for (const key of facts.heldKeys ?? []) reasons.push(explainKey(key))
  if (facts.copyOf !== null) reasons.push(explainCopy(facts.copyOf))
  return reasons
}

/** A push with the key is a duplicate, and delivers nothing. */
function explainKey({ key, messageId, state, consumerGroup, until }: HeldKey): Reason {
  const group = consumerGroup === null ? '' : ` in group ${JSON.stringify(consumerGroup)}`
  const now = state === 'scheduled' ? 'which is scheduled' : `which has started${group}`
  const end = until === null ? 'it has ended' : (iso(until) as string)
  const text = `Message ${messageId}, ${now}, has the unique key ${JSON.stringify(key)} until ${end}: a push with this key is a duplicate of it.`
  const ofGroup = consumerGroup === null ? {} : { consumerGroup }
  const action = `GET /api/v1/messages/${messageId}`
  return { code: 'unique_key', text, ...ofGroup, key, messageId, state, until: iso(until), action }
}

function explainCopy({ database, systemIdentifier }: Original): Reason {
  const text = `This database is a copy of database "${database}": schedules and redrives do not run here until \`rouse adopt-copy\`.`
  return { code: 'database_copy', text, database, systemIdentifier }
}

function explainGroup(group: GroupFacts, facts: QueueFacts, options: WhyOptions): Reason[] {
  const reasons: Reason[] = []
  const { ready, inFlight } = group
  const limit = facts.inFlightMax
  const isAtLimit = limit > 0 && inFlight >= limit
  if (isAtLimit) {
    const firstExpiresAt = iso(group.firstExpiresAt)
    const text = `${inFlight} of at most ${limit} messages are being processed (maxInFlight): the next message is delivered when one of them is acknowledged or its lease expires. The first lease expires at ${firstExpiresAt}.`
    reasons.push({ code: 'in_flight_limit', text, inFlight, maxInFlight: limit, firstExpiresAt })
  }
  const isRated = group.rateOpensAt !== null
  reasons.push(...explainLimits(group, facts))
  for (const lane of group.held) reasons.push(explainHeld(lane))
  if (ready === 0 && group.behindLeases > 0) reasons.push(explainLeased(group))
  if (group.gatheringLanes > 0) {
    const until = iso(group.gatheringUntil)
    const text = `${partitions(group.gatheringLanes)} gathering messages until no message has arrived for ${facts.windowMs / 1_000} s (windowBuffer), the first until ${until}.`
    reasons.push({ code: 'gathering', text, partitions: group.gatheringLanes, until })
  }
  const stepped = group.retries - group.heldLanes
  if (stepped > 0 && group.heldLanes === 0) {
    const nextRetryAt = iso(group.nextRetryAt)
    const text = `${group.retries === 1 ? '1 message has' : `${group.retries} messages have`} failed and will be tried again, the next at ${nextRetryAt}.`
    reasons.push({ code: 'retry_later', text, count: group.retries, nextRetryAt })
  }
  if (group.prioritized > 0 && ready > group.prioritized) reasons.push(explainPriority(group))
  if (ready > 0 && !isAtLimit && !isRated && !facts.paused)
    reasons.push(explainReady(group, options))
  const isWithheld = isAtLimit || group.fullLanes > 0 || group.ratedLanes > 0
  if (ready === 0 && group.behindLeases === 0 && inFlight > 0 && !isWithheld) {
    const firstExpiresAt = iso(group.firstExpiresAt)
    const text = `Everything is delivered: ${messages(inFlight)} being processed. The first lease expires at ${firstExpiresAt}.`
    const who = readHolder(group.holder)
    reasons.push({ code: 'in_progress', text, inFlight, firstExpiresAt, ...who })
  }
  if (group.expired > 0) {
    const text = `${messages(group.expired)} too old: ${group.expired === 1 ? 'it was' : 'they were'} not delivered within the ttlMs of the push, and will not be.`
    reasons.push({ code: 'expired', text, count: group.expired })
  }
  if (group.dead > 0) {
    const text = `${count(group.dead)} failed too often or for good, and ${group.dead === 1 ? 'is a dead letter' : 'are dead letters'}.`
    const action = `GET /api/v1/dead-letters?queue=${encodeURIComponent(options.queue)}`
    reasons.push({ code: 'dead_letters', text, count: group.dead, action })
  }
  if (group.idle !== null) reasons.push(...explainIdle(group, group.idle, options))
  return reasons
}

/** Messages with a priority are delivered before all others, however many there are. */
function explainPriority({ ready, prioritized, topPriority }: GroupFacts): Reason {
  const behind = ready - prioritized
  const text = `${messages(prioritized)} delivered first because of their priority, the highest is ${topPriority}: ${messages(behind)} waiting behind them.`
  return { code: 'priority', text, prioritized, topPriority, behind }
}

/** The limits that withhold messages: of the whole group, and of single partitions. */
function explainLimits(group: GroupFacts, facts: QueueFacts): Reason[] {
  const reasons: Reason[] = []
  const name = JSON.stringify(group.consumerGroup)
  const { ready, rateOpensAt, ratedLanes, fullLanes } = group
  if (rateOpensAt !== null) {
    const [limit, perMs, until] = [facts.rateLimit, facts.ratePerMs, iso(rateOpensAt)]
    const text = `Group ${name} has got as many messages as it may, ${limit} in ${perMs} ms (rate): ${messages(ready)} waiting, and the next is delivered at ${until}.`
    reasons.push({ code: 'rate_limit', text, limit, perMs, ready, until })
  }
  if (fullLanes > 0) {
    const [limit, behind] = [facts.partitionInFlightMax, group.behindFull]
    const firstExpiresAt = iso(group.firstExpiresAt)
    const text = `Group ${name} holds as many messages of ${partitionCount(fullLanes)} as it may, ${limit} each (maxInFlightPerPartition): ${messages(behind)} waiting until one of them is acknowledged or its lease expires. The first lease expires at ${firstExpiresAt}.`
    const more = { partitions: fullLanes, limit, behind, firstExpiresAt }
    reasons.push({ code: 'partition_in_flight_limit', text, ...more })
  }
  if (ratedLanes > 0) {
    const [limit, perMs] = [facts.partitionRateLimit, facts.partitionRatePerMs]
    const [behind, until] = [group.behindRate, iso(group.ratedUntil)]
    const text = `Group ${name} has got as many messages of ${partitionCount(ratedLanes)} as it may, ${limit} each in ${perMs} ms (partitionRate): ${messages(behind)} waiting, and the next is delivered at ${until}.`
    const more = { partitions: ratedLanes, limit, perMs, behind, until }
    reasons.push({ code: 'partition_rate_limit', text, ...more })
  }
  return reasons
}

/** Reports which messages an idle group keeps from retention, or that the group no longer keeps any. */
function explainIdle(group: GroupFacts, idle: IdleFacts, options: WhyOptions): Reason[] {
  const lastSeenAt = iso(group.lastSeenAt)
  if (idle.letGoAt !== null) {
    const text = `No request since ${lastSeenAt}, longer than ROUSE_IDLE_GROUP_SECONDS: messages that all other groups have completed may be removed before this group gets them.`
    return [{ code: 'idle_group', text, lastSeenAt, letGoAt: iso(idle.letGoAt) }]
  }
  if (idle.messages === 0) return []
  const { idleGroupMs, queue } = options
  const [oldestAt, until] = [
    iso(idle.oldestAt),
    idleGroupMs > 0 ? iso(idle.since + idleGroupMs) : null,
  ]
  const end =
    until === null
      ? 'permanently (ROUSE_IDLE_GROUP_SECONDS is 0)'
      : `until ${until} (ROUSE_IDLE_GROUP_SECONDS), and longer if no other group is in use then`
  const action = `DELETE /api/v1/groups/${encodeURIComponent(group.consumerGroup)}/queues/${encodeURIComponent(queue)}`
  const text =
    `No request since ${lastSeenAt}: this group holds back retention and keeps ${idle.isPartial ? 'at least ' : ''}` +
    `${count(idle.messages)}, the oldest of ${oldestAt}, ${end}. Delete the group if it is not needed.`
  const facts = { lastSeenAt, messages: idle.messages, isPartial: idle.isPartial, oldestAt, until }
  return [{ code: 'holds_retention', text, ...facts, action }]
}

function explainHeld(lane: HeldLane): Reason {
  const { behind, dueAt, attempts, ...facts } = lane
  const error = lane.errorMessage ?? lane.errorCode
  const nextTryAt = iso(dueAt)
  const text =
    `${lane.partition === null ? 'The lane of messages without a partition' : `Partition "${lane.partition}"`} is held by message ${lane.messageId ?? lane.transactionId}, which failed ${times(attempts)}` +
    `${error === null ? '' : ` (${error.slice(0, 200)})`} and is tried again at ${nextTryAt}; ` +
    `${messages(behind)} waiting behind it. With onFailure=skip they would overtake it.`
  return { code: 'held_lane', text, ...facts, attempts, behind, nextTryAt }
}

function explainLeased(group: GroupFacts): Reason {
  const [firstExpiresAt, lastExpiresAt] = [iso(group.firstExpiresAt), iso(group.lastExpiresAt)]
  const until =
    firstExpiresAt === lastExpiresAt
      ? `until ${firstExpiresAt}`
      : `the first until ${firstExpiresAt}, the last until ${lastExpiresAt}`
  const text = `All partitions with messages are leased, ${until}: ${messages(group.behindLeases)} waiting behind ${group.inFlight} that are being processed.`
  const { leasedLanes, behindLeases: behind, inFlight } = group
  return {
    code: 'all_leased',
    text,
    leasedLanes,
    behind,
    inFlight,
    ...readHolder(group.holder),
    firstExpiresAt,
    lastExpiresAt,
  }
}

function explainReady(group: GroupFacts, { waitingFor }: WhyOptions): Reason {
  const waiting = waitingFor(group.consumerGroup)
  const lastSeenAt = iso(group.lastSeenAt)
  const { ready } = group
  if (waiting > 0) {
    const text = `${messages(ready)} ready, and ${waiting === 1 ? '1 pop waits' : `${waiting} pops wait`}: delivery should follow at any moment.`
    return { code: 'ready', text, ready, waiting }
  }
  const text = `${messages(ready)} ready, but no consumer is waiting for ${ready === 1 ? 'it' : 'them'}; the last request of this group was around ${lastSeenAt}.`
  return { code: 'no_consumers', text, ready, lastSeenAt }
}

/** Reasons that are reported but do not explain why nothing is delivered. */
const besides: readonly string[] = ['dead_letters', 'expired', 'idle_group', 'holds_retention']

/** Reasons that concern the whole queue, if no reason of a group explains why nothing is delivered. */
function explainQueue(facts: QueueFacts, known: readonly Reason[], options: WhyOptions): Reason[] {
  const isExplained = known.some(({ code }) => !besides.includes(code))
  if (facts.groups.length === 0 && facts.messages > 0) {
    const ready = facts.messages
    const kept =
      facts.evictMs === null
        ? `${ready === 1 ? 'it is' : 'all are'} kept until one does`
        : `each is kept for ${facts.evictMs / 1_000} s`
    const text = `${messages(ready)} in the queue, but no consumer group has requested ${ready === 1 ? 'it' : 'them'} yet: ${kept}.`
    return [{ code: 'no_consumers', text, ready }]
  }
  if (isExplained) return []
  if (facts.scheduled > 0) {
    const nextDueAt = iso(facts.nextDueAt)
    const text =
      facts.nextDueAt !== null && facts.nextDueAt <= facts.now
        ? `${messages(facts.scheduled)} scheduled. The first was due at ${nextDueAt}: a node should move it into the queue at any moment.`
        : `Nothing is due before ${nextDueAt}: ${messages(facts.scheduled)} scheduled.`
    return [{ code: 'not_due', text, scheduled: facts.scheduled, nextDueAt }]
  }
  const text = `Queue "${options.queue}" is empty: everything pushed has been consumed, or nothing was pushed.`
  return [{ code: 'empty', text }]
}

function iso(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString()
}

function messages(number: number): string {
  return `${count(number)} ${number === 1 ? 'is' : 'are'}`
}

function count(number: number): string {
  return number === 1 ? '1 message' : `${number} messages`
}

function partitions(number: number): string {
  return `${partitionCount(number)} ${number === 1 ? 'is' : 'are'}`
}

function partitionCount(number: number): string {
  return number === 1 ? '1 partition' : `${number} partitions`
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`
}
