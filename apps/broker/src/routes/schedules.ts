import {
  type DeletedAnswer,
  fieldError,
  parsePartitionName,
  parseQueueName,
  parseTransactionId,
  RouseError,
  readFields,
  type ScheduleBody,
} from '@rouse/protocol'
import {
  databaseNow,
  deleteSchedule,
  findSchedule,
  isEncrypted,
  listSchedules,
  putSchedule,
  type ScheduleRow,
} from '@rouse/storage'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { requireOnFound } from '../auth/forbidden.ts'
import type { Principal } from '../auth/principal.ts'
import { schedulePlace } from '../encryption/payload-cipher.ts'
import { runAdminQuery } from '../http/admin-query.ts'
import { withoutNulls } from '../http/json-body.ts'
import { cursorAfter, readPage } from '../http/page.ts'
import { dataOf, jsonList, jsonWith } from '../http/stored-json.ts'
import { checkPattern, nextTick } from '../scheduler/cron-ticks.ts'
import type { BrokerContext } from '../worker/context.ts'
import { jsonText } from './push.ts'

type NewSchedule = Omit<ScheduleRow, 'nextAt' | 'lastAt' | 'createdAt'>

/** Schedules: each tick of a cron pattern pushes one message, once in the whole cluster. */
export function scheduleRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, cipher } = context

  app.get('/api/v1/schedules', async (request, reply) => {
    const page = readPage(request.query, context.limits)
    const schedules = await runAdminQuery(pool, () => listSchedules(pool, page))
    const names = schedules.map(({ name }) => name)
    reply.type('application/json; charset=utf-8')
    return jsonList(
      'schedules',
      schedules.map((row) => scheduleText(row, cipher)),
      { cursor: cursorAfter(names, page) },
    )
  })

  app.post(
    '/api/v1/schedules',
    {
      preValidation: async (request) => void withoutNulls(request.body, 'payload'),
    },
    (request, reply) => write(request, request.body as ScheduleBody, reply),
  )

  app.get('/api/v1/schedules/:name', async (request, reply) => {
    const name = nameOf(request)
    const found =
      (await runAdminQuery(pool, () => findSchedule(pool, name))) ?? noSuchSchedule(name)
    requireOnFound(request.principal, 'peek', found.queue, () => missingSchedule(name))
    reply.type('application/json; charset=utf-8')
    return scheduleText(found, cipher)
  })

  app.put(
    '/api/v1/schedules/:name',
    { preValidation: async (request) => void withoutNulls(request.body, 'payload') },
    (request, reply) => {
      // Not a copy: the body has the exact text of numbers in its payload.
      const body = Object.assign(request.body as ScheduleBody, { name: nameOf(request) })
      return write(request, body, reply)
    },
  )

  app.delete('/api/v1/schedules/:name', async (request): Promise<DeletedAnswer> => {
    const name = nameOf(request)
    await requireOnExisting(request.principal, name, context)
    const existed = await runAdminQuery(pool, () => deleteSchedule(pool, name))
    if (!existed) noSuchSchedule(name)
    return { deleted: true }
  })

  async function write(
    { principal }: FastifyRequest,
    body: ScheduleBody,
    reply: FastifyReply,
  ): Promise<string> {
    const schedule = readSchedule(body, context)
    await requireOnExisting(principal, schedule.name, context)
    const now = await runAdminQuery(pool, () => databaseNow(pool))
    const next = nextTick(schedule, now)
    if (next === undefined) throw fieldError('invalid_request', 'cron', 'never ticks')
    const nextAt = schedule.paused ? null : next
    const row = { ...(await sealed(schedule, context)), nextAt }
    const written = await runAdminQuery(pool, () => putSchedule(pool, row))
    context.requestDuePoll()
    reply.type('application/json; charset=utf-8')
    return scheduleText(written, cipher)
  }
}

/**
 * If a schedule pushes to a queue that the request does not name, it belongs to the principals of that queue.
 */
async function requireOnExisting(
  principal: Principal,
  name: string,
  { pool }: BrokerContext,
): Promise<void> {
  if (principal.grants.everywhere.has('manage')) return
  const found = await runAdminQuery(pool, () => findSchedule(pool, name))
  if (found === undefined) return
  requireOnFound(principal, 'manage', found.queue, () => missingSchedule(name))
}

/** Seals the payload if the queue is encrypted, or will be encrypted when it is created. */
async function sealed(
  schedule: NewSchedule,
  { pool, cipher }: BrokerContext,
): Promise<NewSchedule> {
  if (!(await runAdminQuery(pool, () => isEncrypted(pool, schedule.queue)))) return schedule
  return { ...schedule, payload: cipher.seal(schedulePlace(schedule), schedule.payload) }
}

function nameOf(request: FastifyRequest): string {
  return readName((request.params as { readonly name: string }).name)
}

function missingSchedule(name: string): RouseError {
  return new RouseError('not_found', `there is no schedule "${name}"`)
}

function noSuchSchedule(name: string): never {
  throw missingSchedule(name)
}

function readSchedule(body: ScheduleBody, context: BrokerContext): NewSchedule {
  const { timeZone = 'UTC', headers, catchUp = 'last', paused = false } = body
  const { payloadBytesMax, messageHeadersBytesMax } = context.limits
  return readFields({
    name: () => readName(body.name),
    queue: () => parseQueueName(body.queue),
    partition: () => (body.partition === undefined ? null : parsePartitionName(body.partition)),
    cron: () => readPattern(body.cron),
    timeZone: () => readTimeZone(timeZone),
    payload: () => jsonText(body, 'payload', 'payload', payloadBytesMax),
    headers: () =>
      headers === undefined ? null : jsonText(body, 'headers', 'headers', messageHeadersBytesMax),
    catchUp: () => catchUp,
    paused: () => paused,
  })
}

/** The same rule as for transaction ids, because the name is used in a path and in a header. */
function readName(name: string): string {
  return parseTransactionId(name, 'name')
}

function readPattern(cron: string): string {
  try {
    checkPattern(cron)
    return cron
  } catch (error) {
    throw fieldError('invalid_request', 'cron', (error as Error).message)
  }
}

function readTimeZone(timeZone: string): string {
  try {
    void new Intl.DateTimeFormat('en', { timeZone })
    return timeZone
  } catch {
    throw fieldError('invalid_request', 'timeZone', 'must be a time zone such as Europe/Berlin')
  }
}

function scheduleText(row: ScheduleRow, cipher: BrokerContext['cipher']): string {
  const { payload, headers, ...fields } = row
  const { data, more } = dataOf(cipher, schedulePlace(row), payload)
  return jsonWith({ ...fields, ...more }, { payload: data, headers })
}
