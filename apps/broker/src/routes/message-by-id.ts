// A message by the id that its push returned: cancels it, makes it due. Cancels all messages of a queue in a
// state, page by page.
import {
  type CancelManyAnswer,
  completionGroup,
  isUuid,
  type MessageState,
  messageStates,
  parseBoolean,
  parseChoice,
  RouseError,
  readFields,
  shownGroup,
  type Verb,
  type WakeHint,
} from '@rouse/protocol'
import { cancelMessage, type MessageById, messageById, runNow, type TakenKey } from '@rouse/storage'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { requireOnFound } from '../auth/forbidden.ts'
import type { Principal } from '../auth/principal.ts'
import { runAdminQuery } from '../http/admin-query.ts'
import { requireReadable } from '../http/redaction.ts'
import type { BrokerContext } from '../worker/context.ts'
import { completedAtOf, groupsText, shownState, toAttempt } from './message/groups.ts'
import { listMatching, messageText, type Query, readFilter } from './messages.ts'

/** A message in another state cannot be cancelled. */
const cancellableStates = ['ready', 'retrying', 'scheduled'] as const

export function messageByIdRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, coordinator } = context

  app.delete('/api/v1/messages/:id', async (request) => {
    const id = idOf(request)
    const { queue } = await findById(id, request.principal, 'manage', context)
    const done = await runAdminQuery(pool, (executor) => cancelMessage(executor, id))
    switch (done.outcome) {
      case 'cancelled':
        coordinator.notifyMessageAvailable([...done.woken, endHint(queue)])
        return { cancelled: true }
      case 'leased':
        throw new RouseError('message_leased', undefined, {
          facts: { leaseExpiresAt: new Date(done.leaseExpiresAtMs).toISOString() },
        })
      case 'finished':
        throw new RouseError('message_finished')
      case 'not_found':
        throw noSuchMessage(id)
    }
  })

  app.delete('/api/v1/messages', (request) => cancelPage(request.query as Query, context))

  app.post('/api/v1/messages/:id/run-now', async (request) => {
    const id = idOf(request)
    await findById(id, request.principal, 'manage', context)
    const done = await runAdminQuery(pool, (executor) => runNow(executor, id))
    switch (done.outcome) {
      case 'scheduled':
        context.requestDuePoll()
        return { id, state: 'scheduled' }
      case 'retrying':
        coordinator.notifyMessageAvailable(done.woken)
        return { id, state: 'retrying' }
      case 'not_scheduled':
        throw new RouseError('not_scheduled')
      case 'not_found':
        throw noSuchMessage(id)
    }
  })
}

/**
 * Throws if there is no such message, or the principal lacks the grant for its queue. `read`: one that may only
 * observe the queue gets the message without its content.
 */
export async function findById(
  id: string,
  principal: Principal,
  verb: Verb | 'read',
  { pool }: Pick<BrokerContext, 'pool'>,
): Promise<MessageById> {
  const found = await runAdminQuery(pool, (executor) => messageById(executor, id))
  if (found === undefined) throw noSuchMessage(id)
  const missing = () => noSuchMessage(id)
  if (verb === 'read') requireReadable(principal, found.queue, missing)
  else requireOnFound(principal, verb, found.queue, missing)
  return found
}

/** The hint for requests that wait for a message of this queue to end. */
function endHint(queue: string): WakeHint {
  return { queue, group: completionGroup }
}

/** Each message is cancelled by a call of its own, so that pops and pushes never wait for more than one. */
const messagesPerChunk = 50
/** A step ends after this time, also if it has handled fewer messages than it may. */
const stepMsMax = 1_000

/** Cancels a page of messages, or only counts them. A message that was delivered meanwhile is left. */
async function cancelPage(query: Query, context: BrokerContext): Promise<CancelManyAnswer> {
  const { filter, isDryRun } = readFields({
    filter: () => readFilter(query, context.limits.pageSizeMax),
    state: () => parseChoice('state', query.state, cancellableStates),
    isDryRun: () => query.dryRun !== undefined && parseBoolean('dryRun', query.dryRun),
  })
  const untilMs = context.clock.nowMs() + stepMsMax
  let [matched, cancelled] = [0, 0]
  let cursor = query.cursor as string | null | undefined
  do {
    const limit = Math.min(filter.limit - matched, isDryRun ? filter.limit : messagesPerChunk)
    const page = await listMatching({ ...filter, limit }, { ...query, cursor }, context)
    matched += page.messages.length
    cursor = page.cursor
    for (const { id } of isDryRun ? [] : page.messages) {
      const done = await runAdminQuery(context.pool, (executor) => cancelMessage(executor, id))
      if (done.outcome !== 'cancelled') continue
      context.coordinator.notifyMessageAvailable(done.woken)
      cancelled += 1
    }
  } while (cursor !== null && matched < filter.limit && context.clock.nowMs() < untilMs)
  if (cancelled > 0) context.coordinator.notifyMessageAvailable([endHint(filter.queue)])
  return { matched, cancelled, cursor }
}

export function idOf(request: FastifyRequest): string {
  const { id } = request.params as { readonly id: string }
  const known = id.toLowerCase()
  if (!isUuid(known)) throw noSuchMessage(id)
  return known
}

function noSuchMessage(id: string): RouseError {
  return new RouseError('not_found', `there is no message "${id}"`)
}

export function toText(
  found: MessageById,
  unique: TakenKey | undefined,
  context: BrokerContext,
): string {
  const { queue, groups, cancelledAt, keptUntil, options, enteredAt: _, ...message } = found
  const { expiresAt } = options
  const attempts = groups.flatMap(({ consumerGroup, history }) =>
    history.map((attempt) => ({
      consumerGroup: shownGroup(consumerGroup),
      ...toAttempt(attempt),
    })),
  )
  const deliveries = groups.flatMap(({ deliveredAt, history }) => [
    deliveredAt,
    ...history.map((attempt) => attempt.deliveredAt),
  ])
  const state = stateOf(found)
  const fields = {
    state,
    cancelledAt: cancelledAt?.toISOString() ?? null,
    keptUntil: keptUntil?.toISOString() ?? null,
    unique: unique ?? null,
    ...options,
    expiresAt: expiresAt === null ? null : new Date(expiresAt).toISOString(),
    firstDeliveredAt: earliest(deliveries),
    completedAt: state === 'completed' ? latest(groups.map(completedAtOf)) : null,
    attempts,
  }
  return messageText(message, queue, context, fields, {
    result: newest(groups, 'result', 'completedAt'),
    progress: newest(groups, 'progress', 'progressAt'),
    groups: groupsText(groups, shownGroup),
  })
}

/** The result or progress that was reported last, by any group. */
function newest(
  groups: MessageById['groups'],
  what: 'result' | 'progress',
  when: 'completedAt' | 'progressAt',
): string | null {
  const reported = groups.filter((group) => group[what] !== null)
  const [last] = reported.toSorted((a, b) => (b[when] ?? 0) - (a[when] ?? 0))
  return last?.[what] ?? null
}

/** Null if one of the times is not known. */
function latest(times: readonly (number | null)[]): string | null {
  const known = times.filter((time) => time !== null)
  return known.length < times.length ? null : new Date(Math.max(...known)).toISOString()
}

/** The state of a message. If several groups get it, the state in the group that is furthest behind. */
export function stateOf({ dueAt, seq, cancelledAt, groups }: MessageById): MessageState {
  if (cancelledAt !== null) return 'cancelled'
  if (seq === null && dueAt !== undefined) return 'scheduled'
  const states = new Set(groups.map(({ status }) => shownState(status)))
  return messageStates.find((state) => states.has(state)) ?? 'ready'
}

function earliest(times: readonly (number | null)[]): string | null {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : new Date(Math.min(...known)).toISOString()
}
