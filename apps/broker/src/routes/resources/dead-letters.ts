// Dead letters as resources: the `id` of a dead letter is that of its message, and `letterId` its own number.
// The unnamed consumer group has the name `default`.
import {
  fieldError,
  parseQueueName,
  RouseError,
  readFields,
  requestDefaults,
  shownGroup,
} from '@rouse/protocol'
import { type DeadLetterRow, deadLetters } from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import type { Principal } from '../../auth/principal.ts'
import { runAdminQuery } from '../../http/admin-query.ts'
import { requireFilter, requireReadable, shownTo } from '../../http/redaction.ts'
import { jsonList } from '../../http/stored-json.ts'
import type { BrokerContext } from '../../worker/context.ts'
import {
  countByError,
  idOfLetter,
  letterText,
  optional,
  purgeMatching,
  type Query,
  readFilter,
  readNumber,
  redriveRoutes,
  uuid,
} from '../dead-letters.ts'

/** One message has at most one dead letter per consumer group. */
const groupsMax = 1_000

export function deadLetterResourceRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, limits } = context

  app.get('/api/v1/dead-letters', async (request, reply) => {
    const query = request.query as Query
    const { queue, where, limit, before } = readFields({
      queue: () => optional(query.queue, parseQueueName),
      where: () => readFilter(query),
      limit: () =>
        readNumber('limit', query, { min: 1, max: limits.pageSizeMax }) ?? requestDefaults.pageSize,
      before: () => optional(query.cursor, readCursor),
    })
    const { consumerGroup: group, ...others } = where
    const filter = { ...others, queue, group, limit, before }
    requireFilter(request.principal, queue, where.errorMessage !== undefined)
    const { letters } = await runAdminQuery(pool, (executor) => deadLetters(executor, filter))
    const last = letters.length < limit ? undefined : letters.at(-1)
    reply.type('application/json; charset=utf-8')
    return jsonList('deadLetters', texts(letters, request.principal), { cursor: last?.id ?? null })
  })

  app.get('/api/v1/dead-letters/:id', async (request, reply) => {
    const id = (request.params as { readonly id: string }).id.toLowerCase()
    const filter = { ids: [id], limit: groupsMax }
    const { letters } =
      idOfLetter.test(id) || uuid.test(id)
        ? await runAdminQuery(pool, (executor) => deadLetters(executor, filter))
        : { letters: [] }
    const missing = () => new RouseError('not_found', `there is no dead letter "${id}"`)
    if (letters.length === 0) throw missing()
    for (const { queue } of letters) requireReadable(request.principal, queue, missing)
    reply.type('application/json; charset=utf-8')
    return jsonList('deadLetters', texts(letters, request.principal))
  })

  app.delete('/api/v1/dead-letters', (request) => purgeMatching(request, context))

  app.get('/api/v1/dead-letters/errors', async (request) => {
    const { groups } = await countByError(request.query as Query, context)
    return {
      errors: groups.map((one) => ({ ...one, consumerGroup: shownGroup(one.consumerGroup) })),
    }
  })

  redriveRoutes(app, context, '/api/v1/dead-letters/redrives')

  function texts(letters: readonly DeadLetterRow[], principal: Principal): string[] {
    return letters.map((letter) => {
      const text = letterText(letter, context, {
        id: letter.messageId,
        letterId: letter.id,
        consumerGroup: shownGroup(letter.group),
      })
      return shownTo(principal, letter.queue, text)
    })
  }
}

function readCursor(cursor: unknown): string {
  if (typeof cursor === 'string' && idOfLetter.test(cursor)) return cursor
  throw fieldError('invalid_request', 'cursor', 'must be a cursor from a response')
}
