// Why one message took as long as it did: what all nodes recorded, and what the database knows.
import {
  isUuid,
  type MessageWhyAnswer,
  parseChoice,
  parseConsumerGroup,
  RouseError,
  shownGroup,
} from '@rouse/protocol'
import {
  type MessageById,
  type MessageInGroup,
  messageById,
  partitionHolds,
  queueFacts,
  queueOptions,
} from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { requireOnFound } from '../../auth/forbidden.ts'
import { askPeers, fetchFrom } from '../../cluster/cluster-stats.ts'
import { runAdminQuery } from '../../http/admin-query.ts'
import { endOf, explainMessage, type MessageFacts } from '../../observe/why/explain-message.ts'
import { culpritOf, stepsOf, summaryOf, tenths } from '../../observe/why/message-steps.ts'
import type { NodeTraces, TraceRecord, TraceRequest } from '../../observe/why/trace-record.ts'
import type { BrokerContext } from '../../worker/context.ts'
import { stateOf } from '../message-by-id.ts'
import { findReasons } from '../why.ts'

type Query = Readonly<Record<string, unknown>>

export function messageWhyRoute(app: FastifyInstance, context: BrokerContext): void {
  const { pool } = context

  app.get('/api/v1/messages/:id/why', async (request) => {
    const id = (request.params as { readonly id: string }).id.toLowerCase()
    const query = request.query as Query
    const scope = parseChoice('scope', query.scope ?? 'cluster', ['node', 'cluster'])
    const missing = () => new RouseError('not_found', `there is no message "${id}"`)
    if (!isUuid(id)) throw missing()
    const found = await runAdminQuery(pool, (executor) => messageById(executor, id))
    if (found === undefined) throw missing()
    requireOnFound(request.principal, 'observe', found.queue, missing)
    const asked: TraceRequest = {
      id,
      queue: found.queue,
      partitionId: found.partitionId,
      fromMs: found.createdAt.getTime(),
    }
    if (scope === 'node') return await context.tracesOf(asked)
    const wanted =
      query.consumerGroup === undefined ? undefined : parseConsumerGroup(query.consumerGroup)
    return await explain(found, asked, wanted, context)
  })
}

async function explain(
  found: MessageById,
  asked: TraceRequest,
  wanted: string | undefined,
  context: BrokerContext,
): Promise<MessageWhyAnswer> {
  const { records, pauses, unreachable } = await allTraces(asked, context)
  const known = deliveriesOf(records)
  const group = chooseGroup(found.groups, wanted, known)
  const facts = await factsOf(found, group, { records, pauses }, context)
  const spans = explainMessage(facts)
  const first = spans[0]?.fromMs ?? facts.createdAtMs
  const totalMs = endOf(facts) - first
  const [hasPush, hasDelivery] = [facts.push !== undefined, facts.deliveries.length > 0]
  return {
    id: asked.id,
    queue: found.queue,
    partition: found.partition,
    consumerGroup: group === undefined ? null : shownGroup(group.consumerGroup),
    state: stateOf(found),
    totalMs: tenths(totalMs),
    summary: summaryOf(spans, totalMs),
    culprit: culpritOf(spans, totalMs),
    spans: spans.map(({ fromMs, toMs, cause, text, facts: more = {} }) => ({
      ...more,
      cause,
      from: new Date(fromMs).toISOString(),
      to: new Date(toMs).toISOString(),
      ms: tenths(toMs - fromMs),
      text,
    })),
    steps: stepsOf(facts),
    recorded: hasPush && hasDelivery ? 'full' : hasPush || hasDelivery ? 'partly' : 'none',
    unreachable,
  }
}

async function factsOf(
  found: MessageById,
  group: MessageInGroup | undefined,
  { records, pauses }: NodeTraces,
  context: BrokerContext,
): Promise<MessageFacts> {
  const { pool } = context
  const { queue, partitionId, seq, createdAt, enteredAt } = found
  const name = group?.consumerGroup
  const isWaiting = group === undefined ? enteredAt !== null : group.status === 'pending'
  const queueNow = await runAdminQuery(pool, () => queueFacts(pool, queue, name))
  const options = await runAdminQuery(pool, () => queueOptions(pool, queue))
  const isKeyed = found.partition !== null && queueNow?.ordering !== 'none'
  const storedHolds =
    partitionId === null || seq === null
      ? []
      : await runAdminQuery(pool, () =>
          partitionHolds(pool, { partitionId, seq, sinceMs: createdAt.getTime() }),
        )
  const [reason] = isWaiting ? await findReasons(queue, name, false, context) : []
  const ofGroup = <One extends { readonly group: string }>(list: readonly One[]) =>
    list.filter((one) => one.group === name)
  return {
    nowMs: queueNow?.now ?? context.clock.wallMs(),
    createdAtMs: createdAt.getTime(),
    enteredAtMs: enteredAt?.getTime() ?? null,
    dueAtMs: found.dueAt?.getTime() ?? null,
    cancelledAtMs: found.cancelledAt?.getTime() ?? null,
    isOrdered: isKeyed && options?.onFailure !== 'skip',
    seq,
    group,
    push: records.find((record) => record.kind === 'push'),
    deliveries: ofGroup(deliveriesOf(records)),
    holds: ofGroup(records.filter((record) => record.kind === 'hold')),
    storedHolds: storedHolds.filter(({ consumerGroup }) => consumerGroup === name),
    limits: ofGroup(records.filter((record) => record.kind === 'limit')),
    pauses,
    queue: queueNow,
    reason,
  }
}

function deliveriesOf(records: readonly TraceRecord[]) {
  return records
    .filter((record) => record.kind === 'delivery')
    .sort((a, b) => a.poppedAtMs - b.poppedAtMs)
}

/** The group that was asked for; otherwise one that has not finished, or the one that got the message last. */
function chooseGroup(
  groups: readonly MessageInGroup[],
  wanted: string | undefined,
  deliveries: ReturnType<typeof deliveriesOf>,
): MessageInGroup | undefined {
  if (wanted !== undefined) {
    const group = groups.find(({ consumerGroup }) => consumerGroup === wanted)
    if (group === undefined) throw new RouseError('not_found', `there is no group "${wanted}"`)
    return group
  }
  const open = groups.find(({ status }) => status !== 'completed' && status !== 'dead')
  const last = deliveries.at(-1)?.group
  return open ?? groups.find(({ consumerGroup }) => consumerGroup === last) ?? groups[0]
}

async function allTraces(
  asked: TraceRequest,
  context: BrokerContext,
): Promise<NodeTraces & Pick<MessageWhyAnswer, 'unreachable'>> {
  const [own, stats] = await Promise.all([context.tracesOf(asked), context.stats()])
  const { answers, unreachable } = await askPeers(stats, async (url) => {
    const address = `${url}/api/v1/messages/${asked.id}/why?scope=node`
    return readTraces(await fetchFrom(address, context.nodeAuthorization()))
  })
  return {
    records: [own, ...answers].flatMap(({ records }) => records),
    pauses: [own, ...answers].flatMap(({ pauses }) => pauses),
    unreachable: unreachable.map(({ id, error }) => ({ id: String(id), error: String(error) })),
  }
}

/** Checks the answer, because the address may belong to another version or another server. */
function readTraces(answer: unknown): NodeTraces {
  const { records, pauses } = (answer ?? {}) as Partial<NodeTraces>
  if (Array.isArray(records) && Array.isArray(pauses)) return { records, pauses }
  throw new Error('it did not respond like a Rouse node')
}
