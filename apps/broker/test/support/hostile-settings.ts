// Runs every kind of call against a node whose database has settings that would break a node that relies on
// defaults.
import { eventually, startPgbouncer, type TestDatabase, testDatabase } from '@rouse/testkit'
import type { Test } from 'tap'
import { startBroker } from './broker.ts'
import { type Answer, apiOf } from './http.ts'

/** Settings that the test sets with `alter database`. */
export const hostileSettings: Readonly<Record<string, string>> = {
  default_transaction_isolation: `'repeatable read'`,
  DateStyle: `'SQL, DMY'`,
  IntervalStyle: `'sql_standard'`,
  TimeZone: `'Asia/Kathmandu'`,
  bytea_output: `'escape'`,
  extra_float_digits: `-9`,
  standard_conforming_strings: `off`,
  array_nulls: `off`,
  client_min_messages: `'error'`,
  search_path: `trap, public, pg_catalog`,
  lock_timeout: `'50ms'`,
  statement_timeout: `'100ms'`,
  idle_in_transaction_session_timeout: `'1ms'`,
  idle_session_timeout: `'1s'`,
  transaction_timeout: `'100ms'`,
}

/**
 * The settings to test one by one: those that once broke a node, or all with ROUSE_TEST_SETTINGS=all. One
 * more case has all settings together.
 */
const single =
  process.env.ROUSE_TEST_SETTINGS === 'all'
    ? Object.keys(hostileSettings)
    : ['default_transaction_isolation', 'DateStyle', 'search_path', 'statement_timeout']
export const hostileCases = [...single.map((name) => [name]), Object.keys(hostileSettings)]

/** Functions that take precedence over the built-ins of the same name, and raise an error. */
const trap = `
  create schema trap;
  create function trap.width_bucket(bigint, bigint[]) returns integer language plpgsql as $$ begin raise 'trapped'; end $$;
  create function trap.array_position(text[], text) returns integer language plpgsql as $$ begin raise 'trapped'; end $$;
  create function trap.cardinality(text[]) returns integer language plpgsql as $$ begin raise 'trapped'; end $$;
  create function trap.current_setting(text) returns text language plpgsql as $$ begin raise 'trapped'; end $$;
  create function trap.current_setting(text, boolean) returns text language plpgsql as $$ begin raise 'trapped'; end $$;
  create function trap.pg_backend_pid() returns integer language plpgsql as $$ begin raise 'trapped'; end $$;
  create function trap.same(integer, integer) returns boolean language plpgsql as $$ begin raise 'trapped'; end $$;
  create operator trap.= (leftarg = integer, rightarg = integer, function = trap.same);`

export type Way = 'direct' | 'pgbouncer'

export async function answersWith(
  t: Test,
  way: Way,
  settings: readonly string[],
): Promise<unknown> {
  const database = await testDatabase(t, { instrumented: false })
  const name = database.url.split('/').at(-1)
  await database.pool.query(trap)
  for (const setting of settings) {
    // transaction_timeout exists since PostgreSQL 17.
    const known = await database.pool.query('select from pg_settings where name = $1', [setting])
    if (known.rowCount === 0) continue
    await database.pool.query(`alter database ${name} set ${setting} = ${hostileSettings[setting]}`)
  }
  const env: Record<string, string> = { ROUSE_WORKERS: '1', ROUSE_DATABASE_URL: database.url }
  if (way === 'pgbouncer') {
    const pgbouncer = await startPgbouncer(database.url, { poolSize: 4 })
    t.teardown(() => pgbouncer.stop())
    env.ROUSE_DATABASE_URL = pgbouncer.through(database.url)
    env.ROUSE_LISTEN_URL = database.url
  }
  const node = await startBroker(t, { database, env })
  const answers = await exercise(node.url, database)
  await node.stop()
  return answers
}

/** Makes every kind of call. Removes values that differ between runs from the responses. */
async function exercise(url: string, database: TestDatabase): Promise<Record<string, unknown>> {
  const api = apiOf(url)
  const answers: Record<string, unknown> = {}
  async function note(name: string, call: Promise<Answer>): Promise<Answer> {
    const answer = await call
    answers[name] = { status: answer.status, body: plain(answer.body) }
    return answer
  }
  const take = async (name: string, queue: string, query = '') => {
    const answer = await note(name, api.pop(queue, `?wait=true&timeout=20000&${query}`))
    return answer.body?.messages?.[0] ?? {}
  }
  const items = [1, 2, 3].map((n) => ({ queue: 'q', partition: `p${n}`, payload: n }))
  await note('push', api.push(...items, { queue: 'q', payload: '\\u0000', transactionId: 'k' }))
  await note('push of a duplicate', api.push({ queue: 'q', payload: 1, transactionId: 'k' }))
  await note('push of a bad name', api.push({ queue: 'a\u0001b', payload: 1 }))
  await note('pop and ack', api.ack(await take('pop', 'q')))

  await api.post('/configure', { queue: 'r', options: { retryBackoffMs: [50] } })
  await api.push({ queue: 'r', payload: 'again' })
  await note('failed', api.ack(await take('first', 'r'), 'failed', { error: 'no' }))
  await take('retry', 'r', 'autoAck=true')

  await note('delayed push', api.push({ queue: 'later', payload: 1, delayMs: 300 }))
  await take('delayed pop', 'later', 'autoAck=true')

  await take('pop of a group', 'q', 'consumerGroup=g&batch=9&partitions=9&autoAck=true')
  const seek = { timestamp: '2020-01-01T00:00:00Z' }
  await note('seek', api.post('/consumer-groups/g/queues/q/seek', seek))
  await take('pop after the seek', 'q', 'consumerGroup=g&batch=9&partitions=9&autoAck=true')
  await note('groups', api.get('/consumer-groups'))
  const { body } = await note('messages', api.get('/messages?queue=q'))
  const { partitionId, transactionId } = body.messages?.[0] ?? {}
  await note('message', api.get(`/messages/${partitionId}/${transactionId}`))
  await note('queues', api.get('/resources/queues'))
  await note('why', api.get('/queues/q/why'))

  const schedule = { name: 's', queue: 'ticks', cron: '* * * * * *', payload: 't' }
  await note('schedule', api.post('/schedules', schedule))
  await take('tick', 'ticks', 'autoAck=true')
  await note('schedules', api.get('/schedules'))
  await note('schedule deleted', api.del('/schedules/s'))

  await holdPartitions(database, () => note('purge', api.post('/queues/q/purge')))
  await note('messages after the purge', api.get('/messages?queue=q'))
  await note('queue deleted', api.del('/resources/queues/r'))
  return answers
}

/** Makes a call that has to wait, and releases it after longer than any of the hostile limits. */
async function holdPartitions({ pool }: TestDatabase, call: () => Promise<unknown>): Promise<void> {
  const holder = await pool.connect()
  await holder.query(`begin; set local idle_in_transaction_session_timeout = 0; set local statement_timeout = 0;
    select from rouse.partitions for update`)
  const calling = call()
  await eventually(async () => {
    const { rows } = await pool.query(
      `select from pg_stat_activity where datname = current_database()
         and wait_event_type = 'Lock' and query_start < clock_timestamp() - interval '200 milliseconds'`,
    )
    return rows.length > 0
  }).catch(() => {})
  await holder.query('commit')
  holder.release()
  await calling
}

/** Keeps the shape of times and ids, and drops their values. */
function plain(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) {
    const list = value.map((one) => plain(one, key))
    return list.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  }
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v, k)]))
  }
  if (typeof value === 'number') return /Ms$|Lag|bytes|rate/i.test(key) ? 'number' : value
  if (typeof value !== 'string') return value
  return plainText(value, key)
}

function plainText(text: string, key: string): string {
  const isNear = (time: string) => Math.abs(Date.parse(time) - Date.now()) < 3_600_000
  const value = text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => (isNear(time) ? 'now' : 'then'))
  if (/^([0-9a-f-]{36}|[\w-]{48})$/.test(value)) return 'id'
  return ['message', 'traceId', 'node', 'instance', 'holder'].includes(key) ? key : value
}
