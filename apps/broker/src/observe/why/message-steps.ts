// The timeline of one message, and its delay in words.
import type { MessageCause, MessageWhyAnswer } from '@rouse/protocol'
import type { CausedSpan, MessageFacts } from './explain-message.ts'
import { nameOf } from './explain-message.ts'
import type { Missing } from './not-recorded.ts'

type Step = MessageWhyAnswer['steps'][number]
type Found = Omit<Step, 'at' | 'ms'> & { readonly atMs: number }

export function stepsOf(facts: MessageFacts): Step[] {
  const found = [
    ...pushSteps(facts),
    ...facts.deliveries.flatMap(deliverySteps),
    ...failures(facts),
  ]
  found.sort((a, b) => a.atMs - b.atMs)
  const first = found[0]?.atMs ?? 0
  return found.map(({ atMs, ...step }) => {
    return { ...step, at: new Date(atMs).toISOString(), ms: tenths(atMs - first) }
  })
}

function pushSteps({ push, createdAtMs, enteredAtMs, dueAtMs }: MessageFacts): Found[] {
  const { node = null, worker = null } = push ?? {}
  const steps: Found[] = []
  if (push !== undefined) {
    const text = `push received by worker ${worker} of ${node}`
    steps.push({ step: 'received', atMs: createdAtMs - push.ms, node, worker, text })
  }
  steps.push({ step: 'committed', atMs: createdAtMs, node, worker, text: 'stored' })
  const dueMs = dueAtMs ?? enteredAtMs
  if (dueMs !== null && dueMs - createdAtMs >= 20) {
    steps.push({ step: 'due', atMs: dueMs, node: null, worker: null, text: 'entered the queue' })
  }
  return steps
}

function deliverySteps(delivery: MessageFacts['deliveries'][number]): Found[] {
  const { node, worker, source, hintMs, popMs, poppedAtMs, answeredMs, ackedMs } = delivery
  const { attempt } = delivery
  const at = { node, worker, attempt }
  const grantedAtMs = poppedAtMs - popMs
  const who = nameOf(delivery.holder)
  const how = source === 'push' ? 'delivered by its push to' : 'popped for'
  const popped = `${how} ${who}, attempt ${attempt}`
  const hint = sourceTexts[source] ?? source
  const steps: Found[] = []
  // A push that delivers its message needs no hint and no grant.
  if (source !== 'push') {
    const may = `worker ${worker} of ${node} may pop`
    steps.push({ step: 'hint', atMs: grantedAtMs - hintMs, ...at, source, text: hint })
    steps.push({ step: 'grant', atMs: grantedAtMs, ...at, text: may })
  }
  steps.push({ step: 'popped', atMs: poppedAtMs, ...at, consumer: who, text: popped })
  if (answeredMs !== null) {
    steps.push({ step: 'answered', atMs: poppedAtMs + answeredMs, ...at, text: `sent to ${who}` })
  }
  if (ackedMs !== null) {
    const { status, ackedBy } = delivery
    const by = ackedBy ?? { node, worker }
    const text = `acknowledged as ${status ?? 'completed'} through worker ${by.worker} of ${by.node}`
    // The time of an ack through another node is by the clock of the database, which a node knows only to
    // within a round trip, so it could come out before the answer.
    const atMs = poppedAtMs + Math.max(ackedMs, answeredMs ?? 0)
    steps.push({ step: 'acked', atMs, attempt, ...by, status: status ?? 'completed', text })
  }
  return steps
}

function failures({ group }: MessageFacts): Found[] {
  return (group?.history ?? []).map(({ attempt, outcome, endedAt, errorCode, holder }) => {
    const step = outcome === 'expired' ? 'expired' : 'failed'
    const error = errorCode === null ? '' : ` (${errorCode})`
    const text = `attempt ${attempt} by ${nameOf(holder)} ended as ${outcome}${error}`
    return { step, atMs: endedAt, node: null, worker: null, attempt, errorCode, text }
  })
}

/** A push announces its messages, and an ack those that it lets through. */
const sourceTexts: Readonly<Record<string, string>> = {
  local: 'hint of the same worker',
  ipc: 'hint of another worker of the node (IPC)',
  udp: 'hint of another node (UDP)',
  notify: 'NOTIFY of an SQL producer',
  timer: 'timer: it became due',
  chain: 'the pop before it found more messages than it could take',
  fallback: 'fallback poll: no hint came',
  request: 'a consumer began to wait',
  poll: 'a pop that does not wait',
}

/** Shorter times need no explanation. */
const shortMs = 10

export function culpritOf(spans: readonly CausedSpan[], totalMs: number) {
  const longest = totalsOf(spans)[0]
  if (longest === undefined || totalMs < shortMs) return null
  const { cause, text, ms, facts = {} } = longest
  return { cause, ms: tenths(ms), text, action: actions[cause] ?? null, ...facts }
}

/** "1.9 s: partition held by message 41; 2 ms: everything else", and what is not known at all. */
export function summaryOf(
  spans: readonly CausedSpan[],
  totalMs: number,
  missing: readonly Missing[],
): string {
  const [longest] = totalsOf(spans)
  const end = missing.find(({ step }) => step === 'acked')
  const unknown = end === undefined ? '' : `; ${end.text}`
  if (longest === undefined) return `nothing is known${unknown}`
  const restMs = totalMs - longest.ms
  const rest = restMs < 0.05 ? '' : `; ${duration(restMs)}: everything else`
  return `${duration(longest.ms)}: ${longest.text}${rest}${unknown}`
}

/** Spans with the same text together, the longest first. */
function totalsOf(spans: readonly CausedSpan[]): (CausedSpan & { readonly ms: number })[] {
  const totals = new Map<string, CausedSpan & { ms: number }>()
  for (const span of spans) {
    const known = totals.get(span.text)
    if (known === undefined) totals.set(span.text, { ...span, ms: span.toMs - span.fromMs })
    else known.ms += span.toMs - span.fromMs
  }
  return [...totals.values()].sort((a, b) => b.ms - a.ms)
}

const actions: Partial<Record<MessageCause, string>> = {
  paused: 'Resume the queue.',
  partition_held:
    'Fix or skip the message that holds the partition: dead-letter it, set onFailure=skip, or use more partitions.',
  rate_limit: 'Raise the rate of the queue.',
  in_flight_limit: 'Raise maxInFlight, or make consumers faster.',
  window_buffer: 'Lower windowBuffer.',
  no_consumer: 'Start more consumers, or let each take several messages at a time.',
  late_wake: 'See whether nodes hear each other: GET /api/v1/nodes, and the mode in /stats.',
  retry_delay: 'Fix the cause of the failure, or lower the retry delay.',
  slow_consumer: 'Make the consumer faster, or shorten its lease.',
  push_slow: 'See how long PostgreSQL takes: rouse_sql_duration_seconds in /metrics.',
}

function duration(ms: number): string {
  if (ms < 1_000) return `${ms < 10 ? tenths(ms) : Math.round(ms)} ms`
  if (ms < 60_000) return `${tenths(ms / 1_000)} s`
  if (ms < 3_600_000) return `${tenths(ms / 60_000)} min`
  return `${tenths(ms / 3_600_000)} h`
}

export function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}
