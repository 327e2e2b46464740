// A message by the id that its push returned: shows it, cancels it, makes it due. Cancels all messages of a
// queue in a state, page by page.
import {
  type CancelManyAnswer,
  isUuid,
  type MessageState,
  messageStates,
  parseBoolean,
  parseChoice,
  RouseError,
  readFields,
  shownGroup,
  type Verb,
} from '@rouse/protocol'
import { cancelMessage, type MessageById, messageById, runNow } from '@rouse/storage'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { requireOnFound } from '../auth/forbidden.ts'
import type { Principal } from '../auth/principal.ts'
import { runAdminQuery } from '../http/admin-query.ts'
import type { BrokerContext } from '../worker/context.ts'
import {
  listMatching,
  messageText,
  type Query,
  readFilter,
  shownState,
  toAttempt,
  toGroup,
} from './messages.ts'

/** A message in another state cannot be cancelled. */
const cancellableStates = ['ready', 'retrying', 'scheduled'] as const

export function messageByIdRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, coordinator } = context

  app.get('/api/v1/messages/:id', async (request, reply) => {
    const id = idOf(request)
    const found = await find(id, request.principal, 'peek')
    reply.type('application/json; charset=utf-8')
    return toText(found, context)
  })

  app.delete('/api/v1/messages/:id', async (request) => {
    const id = idOf(request)
    await find(id, request.principal, 'manage')
    const done = await runAdminQuery(pool, (executor) => cancelMessage(executor, id))
    switch (done.outcome) {
      case 'cancelled':
        coordinator.notifyMessageAvailable(done.woken)
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
    await find(id, request.principal, 'manage')
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

  /** Throws if there is no such message, or the principal lacks the grant for its queue. */
  async function find(id: string, principal: Principal, verb: Verb): Promise<MessageById> {
    const found = await runAdminQuery(pool, (executor) => messageById(executor, id))
    if (found === undefined) throw noSuchMessage(id)
    requireOnFound(principal, verb, found.queue, () => noSuchMessage(id))
    return found
  }
}

/** Cancels a page of messages, or only counts them. A message that was delivered meanwhile is left. */
async function cancelPage(query: Query, context: BrokerContext): Promise<CancelManyAnswer> {
  const { filter, isDryRun } = readFields({
    filter: () => readFilter(query, context.limits.pageSizeMax),
    state: () => parseChoice('state', query.state, cancellableStates),
    isDryRun: () => query.dryRun !== undefined && parseBoolean('dryRun', query.dryRun),
  })
  const { messages, cursor } = await listMatching(filter, query, context)
  let cancelled = 0
  for (const { id } of isDryRun ? [] : messages) {
    const done = await runAdminQuery(context.pool, (executor) => cancelMessage(executor, id))
    if (done.outcome !== 'cancelled') continue
    context.coordinator.notifyMessageAvailable(done.woken)
    cancelled += 1
  }
  return { matched: messages.length, cancelled, cursor }
}

function idOf(request: FastifyRequest): string {
  const { id } = request.params as { readonly id: string }
  const known = id.toLowerCase()
  if (!isUuid(known)) throw noSuchMessage(id)
  return known
}

function noSuchMessage(id: string): RouseError {
  return new RouseError('not_found', `there is no message "${id}"`)
}

function toText(found: MessageById, context: BrokerContext): string {
  const { queue, groups, cancelledAt, keptUntil, ...message } = found
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
  return messageText(message, queue, context, {
    state: stateOf(found),
    cancelledAt: cancelledAt?.toISOString() ?? null,
    keptUntil: keptUntil?.toISOString() ?? null,
    firstDeliveredAt: earliest(deliveries),
    completedAt: null,
    result: null,
    progress: null,
    attempts,
    groups: groups.map((group) => ({
      ...toGroup(group),
      consumerGroup: shownGroup(group.consumerGroup),
    })),
  })
}

/** Of a message that several groups get, the state of the group that is furthest behind. */
function stateOf({ dueAt, seq, cancelledAt, groups }: MessageById): MessageState {
  if (cancelledAt !== null) return 'cancelled'
  if (seq === null && dueAt !== undefined) return 'scheduled'
  const states = new Set(groups.map(({ status }) => shownState(status)))
  return messageStates.find((state) => states.has(state)) ?? 'ready'
}

function earliest(times: readonly (number | null)[]): string | null {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : new Date(Math.min(...known)).toISOString()
}
