// Why one message took as long as it did: what all nodes recorded, and what the database knows.
import {
  isLeaseUuid,
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
import { joinDeliveries, joinHolds, openLeaseIds } from '../../observe/why/join-acks.ts'
import { culpritOf, stepsOf, summaryOf, tenths } from '../../observe/why/message-steps.ts'
import { missingSteps } from '../../observe/why/not-recorded.ts'
import type { NodeTraces, TraceRequest } from '../../observe/why/trace-record.ts'
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
    if (scope === 'node') {
      return await context.tracesOf({ ...asked, leaseIds: readLeaseIds(query.leaseIds) })
    }
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
  const lastGroup = joinDeliveries(records, placeOf(found)).at(-1)?.group
  const group = chooseGroup(found.groups, wanted, lastGroup)
  const facts = await factsOf(found, group, { records, pauses }, context)
  const spans = explainMessage(facts)
  const first = spans[0]?.fromMs ?? facts.createdAtMs
  const totalMs = endOf(facts) - first
  const { whySlowMs: slowMs } = context.config
  const missing = missingSteps(facts, { id: asked.id, slowMs, unreachable })
  const isAny = facts.push !== undefined || facts.deliveries.length > 0
  return {
    id: asked.id,
    queue: found.queue,
    partition: found.partition,
    consumerGroup: group === undefined ? null : shownGroup(group.consumerGroup),
    state: stateOf(found),
    totalMs: tenths(totalMs),
    summary: summaryOf(spans, totalMs, missing),
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
    recorded: missing.length === 0 ? 'full' : isAny ? 'partly' : 'none',
    notRecorded: missing,
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
    deliveries: ofGroup(joinDeliveries(records, placeOf(found))),
    holds: ofGroup(joinHolds(records, seq)),
    storedHolds: storedHolds.filter(({ consumerGroup }) => consumerGroup === name),
    limits: ofGroup(records.filter((record) => record.kind === 'limit')),
    pauses,
    queue: queueNow,
    reason,
  }
}

function placeOf({ id, seq, enteredAt }: MessageById) {
  return { id, seq, enteredAtMs: enteredAt?.getTime() ?? null }
}

/** The group that was asked for; otherwise one that has not finished, or the one that got the message last. */
function chooseGroup(
  groups: readonly MessageInGroup[],
  wanted: string | undefined,
  lastGroup: string | undefined,
): MessageInGroup | undefined {
  if (wanted !== undefined) {
    const group = groups.find(({ consumerGroup }) => consumerGroup === wanted)
    if (group === undefined) throw new RouseError('not_found', `there is no group "${wanted}"`)
    return group
  }
  const open = groups.find(({ status }) => status !== 'completed' && status !== 'dead')
  return open ?? groups.find(({ consumerGroup }) => consumerGroup === lastGroup) ?? groups[0]
}

type AllTraces = NodeTraces & Pick<MessageWhyAnswer, 'unreachable'>

/** The records of all nodes. Acks of leases that no node has seen end are asked for by the ids of the leases. */
async function allTraces(asked: TraceRequest, context: BrokerContext): Promise<AllTraces> {
  const all = await askAll(asked, context)
  const leaseIds = openLeaseIds(all.records).slice(-leaseIdsMax)
  if (leaseIds.length === 0) return all
  const { records } = await askAll({ ...asked, leaseIds }, context)
  const acks = records.filter((record) => record.kind === 'ack')
  return { ...all, records: [...all.records.filter((record) => record.kind !== 'ack'), ...acks] }
}

async function askAll(asked: TraceRequest, context: BrokerContext): Promise<AllTraces> {
  const [own, stats] = await Promise.all([context.tracesOf(asked), context.stats()])
  const { leaseIds = [] } = asked
  const more = leaseIds.length === 0 ? '' : `&leaseIds=${leaseIds.join(',')}`
  const { answers, unreachable } = await askPeers(stats, async (url) => {
    const address = `${url}/api/v1/messages/${asked.id}/why?scope=node${more}`
    return readTraces(await fetchFrom(address, context.nodeAuthorization()))
  })
  return {
    records: [own, ...answers].flatMap(({ records }) => records),
    pauses: [own, ...answers].flatMap(({ pauses }) => pauses),
    unreachable: unreachable.map(({ id, error }) => ({ id: String(id), error: String(error) })),
  }
}

const leaseIdsMax = 50

function readLeaseIds(text: unknown): string[] {
  if (typeof text !== 'string') return []
  return text.split(',').filter(isLeaseUuid).slice(0, leaseIdsMax)
}

/** Checks the answer, because the address may belong to another version or another server. */
function readTraces(answer: unknown): NodeTraces {
  const { records, pauses } = (answer ?? {}) as Partial<NodeTraces>
  if (Array.isArray(records) && Array.isArray(pauses)) return { records, pauses }
  throw new Error('it did not respond like a Rouse node')
}
