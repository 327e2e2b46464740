// Runs the examples of docs/sql.md, unchanged.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { apiOf } from '../support/http.ts'
import { sharedBroker } from '../support/shared-broker.ts'

const text = readFileSync(new URL('../../../../docs/sql.md', import.meta.url), 'utf8')
const node = await sharedBroker()
const api = apiOf(node.url)

/** The first block that is run, by the tests of the documents or by this file. */
function example(language: string): string {
  const mark = '(?:test|not run: .*listen-examples\\.test\\.ts.*)'
  const found = new RegExp(`\`\`\`${language} ${mark}\\n((?:.|\\n)*?)\`\`\``).exec(text)
  return found?.[1] ?? ''
}

/** A folder that no other test uses, and from which `pg` can be imported. */
const folder = new URL('../../.tap/examples/', import.meta.url)

async function run(script: string, onStart?: (child: ChildProcess) => void) {
  mkdirSync(folder, { recursive: true })
  const file = new URL(`${process.pid}.mjs`, folder)
  writeFileSync(file, script)
  const { PATH = '' } = process.env
  const child = spawn(
    'env',
    [
      '-i',
      `PATH=${PATH}`,
      `DATABASE_URL=${node.database.url}`,
      `ROUSE_URL=${node.url}`,
      process.execPath,
      file.pathname,
    ],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  )
  onStart?.(child)
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve))
  rmSync(file)
  return code
}

test('an order and its message are committed together, and handled and acknowledged in one transaction', async (t) => {
  await node.database.pool.query(example('sql'))
  await eventually(async () => {
    const { rows } = await node.database.pool.query('select from rouse.messages')
    return rows.length === 2 // one of `orders`, one of `mails`
  })
  t.equal(await run(example('js')), 0)
  const { rows } = await node.database.pool.query('select total::float8 from orders where id = 42')
  t.same(rows, [{ total: 89.55 }])
  t.equal((await api.pop('orders')).status, 204, 'it is not redelivered')
  t.equal(await run(example('js')), 0, 'an empty queue is not an error')
  const scheduled = await node.database.pool.query('select queue from rouse.scheduled')
  t.same(scheduled.rows, [{ queue: 'reminders' }], 'the reminder is scheduled')
})

test('a worker acknowledges in the transaction of its effect, and stops on request', async (t) => {
  const { pool } = node.database
  await pool.query('create table if not exists orders (id bigint primary key, total numeric)')
  await pool.query('insert into orders values (50, 100)')
  await api.push({ queue: 'orders', payload: { id: 50 } })
  const code = await run(example('ts'), (child) => {
    void eventually(
      async () => {
        const { rows } = await pool.query('select total::float8 from orders where id = 50')
        return rows[0]?.total === 90
      },
      { timeoutMs: 20_000 },
    ).finally(() => child.kill('SIGTERM'))
  })
  t.equal(code, 0)
  t.equal((await api.pop('orders')).status, 204)
})

test('ack_in accepts a receipt, and a leaseId only if the lease holds one message', async (t) => {
  const queue = 'tokens'
  const { pool } = node.database
  await api.push(...[1, 2, 3].map((payload) => ({ queue, payload })))
  const { body } = await api.pop(queue, '?batch=3')
  const [first, second] = body.messages
  const ack = (lease: string) => pool.query('select rouse.ack_in($1) as done', [lease])
  const several = { code: 'RS409', message: /pass the receipt of the message/ }
  await t.rejects(ack(body.leaseId), several)
  t.same((await ack(first.receipt)).rows, [{ done: 1 }])
  await t.rejects(ack(first.receipt), { code: 'RS409' }, 'not twice')
  await t.rejects(ack(body.leaseId), several)
  await t.rejects(ack('x'.repeat(48)), { code: 'RS409' })
  await t.rejects(ack('nonsense'), { code: 'RS409' })
  t.same((await ack(second.receipt)).rows, [{ done: 1 }])
  t.same((await ack(body.leaseId)).rows, [{ done: 1 }], 'the last message')
  await t.rejects(ack(body.leaseId), { code: 'RS409', message: /no longer holds/ })
  const { status, messages } = (await api.get(`/messages?queue=${queue}&status=completed`)).body
  t.equal(messages.length, 3, status)
})

test('a leaseId over several partitions is refused by ack_in, and changes nothing', async (t) => {
  const queue = 'wide'
  await api.push(...['a', 'b'].map((partition) => ({ queue, partition, payload: 1 })))
  const { body } = await api.pop(queue, '?batch=2&partitions=2')
  t.equal(body.messages.length, 2)
  const ack = (lease: string, type: string) =>
    node.database.pool.query(`select rouse.ack_in($1::${type})`, [lease])
  await t.rejects(ack(body.leaseId, 'text'), { code: 'RS409' })
  await t.rejects(ack(body.leaseId, 'uuid'), { code: 'RS409' })
  for (const { receipt } of body.messages) await ack(receipt, 'text')
  t.equal((await api.post(`/lease/${body.leaseId}/extend`)).status, 409)
})
