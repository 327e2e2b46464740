// `rouse keys`, by SQL and through a node.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { sharedNode } from './support/node.ts'
import { bin, rouse } from './support/rouse.ts'

const timeout = 120_000
const node = await sharedNode()
const bySql = { ROUSE_DATABASE_URL: node.database.url }
const atNode = { ROUSE_URL: node.url }
const keyForm = /^rouse_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}\n$/

test('the first key is created by SQL, and closes the node', { timeout }, async (t) => {
  t.equal((await rouse(['queues'], { env: atNode })).code, 0)
  const made = await rouse(['keys', 'create', 'root', '--preset', 'admin'], { env: bySql })
  t.match(made, { code: 0, out: keyForm, err: /root: .*admin.*not shown again/ })
  const ROUSE_TOKEN = made.out.trim()
  await eventually(async () => (await rouse(['queues'], { env: atNode })).code === 2, {
    timeoutMs: 30_000,
  })
  const closed = await rouse(['queues'], { env: atNode })
  t.match(closed.err, /needs a credential.*ROUSE_TOKEN/)
  const doctor = await rouse(['doctor'], { env: { ...bySql, ...atNode } })
  const findings: { check: string; state: string; what: string }[] = JSON.parse(doctor.out)
  t.equal(doctor.code, 5)
  t.match(
    findings.find(({ check }) => check === 'access'),
    { state: 'problem', what: /needs a credential/ },
  )
  t.ok(
    findings.some(({ check }) => check === 'schema'),
    'the database is checked all the same',
  )
  const env = { ...atNode, ROUSE_TOKEN }
  t.equal((await rouse(['queues'], { env })).code, 0)
  t.equal((await rouse(['--token', ROUSE_TOKEN, 'queues'], { env: atNode })).code, 0)
  const folder = await mkdtemp(join(tmpdir(), 'rouse-token-'))
  t.teardown(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'key'), made.out)
  const file = { ...atNode, ROUSE_TOKEN_FILE: join(folder, 'key') }
  t.equal((await rouse(['queues'], { env: file })).code, 0)
  const missing = { ...atNode, ROUSE_TOKEN_FILE: join(folder, 'none') }
  t.match(await rouse(['queues'], { env: missing }), {
    code: 1,
    err: /cannot read ROUSE_TOKEN_FILE/,
  })
})

test('keys are created, listed, rotated and revoked through a node and by SQL', {
  timeout,
}, async (t) => {
  const admin = await rouse(['keys', 'create', 'ops', '--preset', 'admin'], { env: bySql })
  const throughNode = { ...atNode, ROUSE_TOKEN: admin.out.trim() }
  await eventually(async () => (await rouse(['keys'], { env: throughNode })).code === 0, {
    timeoutMs: 30_000,
  })
  for (const [name, env] of [
    ['node', throughNode],
    ['sql', bySql],
  ] as const) {
    const made = await rouse(
      [
        'keys',
        'create',
        name,
        '--preset',
        'producer',
        '--queue',
        'a-*',
        '--grant',
        'observe:b',
        '--expires-in',
        '90d',
      ],
      { env },
    )
    t.match(made, { code: 0, out: keyForm })
    const id = made.out.slice(6, 18)
    const find = async () =>
      JSON.parse((await rouse(['keys', 'list'], { env })).out).filter(
        (key: { name: string }) => key.name === name,
      )
    t.match(await find(), [
      { id, grants: ['push:a-*', 'observe:b'], revokedAt: null, expiresAt: /^20/ },
    ])
    const rotated = await rouse(['keys', 'rotate', id, '--grace', '1m'], { env })
    t.match(rotated, { code: 0, out: keyForm })
    t.equal((await find()).length, 2)
    t.match(await rouse(['keys', 'revoke', id, '--yes'], { env }), {
      code: 0,
      out: `{"id":"${id}","revoked":true}\n`,
    })
    t.match(await rouse(['keys', 'revoke', id, '--yes'], { env }), {
      code: 2,
      err: /no live API key/,
    })
  }
})

test('wrong usage is explained', { timeout }, async (t) => {
  t.match(await rouse(['keys', 'create', 'x'], { env: bySql }), {
    code: 1,
    err: /--preset or --grant/,
  })
  t.match(await rouse(['keys', 'create', 'x', '--preset', 'root'], { env: bySql }), { code: 1 })
  const bad = await rouse(['keys', 'create', 'x', '--grant', 'fly:*'], { env: bySql })
  t.match(bad, { code: 2, err: /must begin with one of push/ })
  t.match(await rouse(['keys', 'generate']), { code: 0, out: keyForm })
})

test('a token in the arguments cannot be read by others on the machine', { timeout }, async (t) => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const args = [bin, '--token', 'rouse_planted', 'queues', '--url', `http://127.0.0.1:${port}`]
  const child = spawn('env', ['-i', process.execPath, ...args], { stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  await new Promise((resolve) => server.once('connection', resolve))
  t.notMatch(readFileSync(`/proc/${child.pid}/cmdline`, 'utf8'), /planted/)
})
