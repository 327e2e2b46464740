// Every verb against a real node: in a pipe, on a terminal, and with errors.
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import type { Json } from '../src/api.ts'
import { createProgram } from '../src/program.ts'
import { sharedNode, unique } from './support/node.ts'
import { bin, plain, rouse, rouseOnTerminal, terminalMissing } from './support/rouse.ts'

const node = await sharedNode()
const env = { ROUSE_URL: node.url }
const timeout = 120_000
const skipTerminal = await terminalMissing()

test('push and pop print one compact document each in a pipe', { timeout }, async (t) => {
  const queue = unique()
  const pushed = await rouse(['push', queue, '{"a": [1, 2]}', '-p', 'x', '-H', 'k=v=w'], { env })
  t.equal(pushed.code, 0, pushed.err)
  t.match(JSON.parse(pushed.out), [{ status: 'queued' }])
  t.equal(pushed.out.trim().split('\n').length, 1)
  const popped = await rouse(['pop', queue, '--wait', '5', '--json'], { env })
  t.equal(popped.code, 0, popped.err)
  const { messages } = JSON.parse(popped.out)
  t.match(messages, [{ data: { a: [1, 2] }, partition: 'x', headers: { k: 'v=w' } }])
  const acked = await rouse(['ack', messages[0].receipt], { env })
  t.equal(acked.code, 0, acked.err)
  t.equal((await rouse(['ack', messages[0].receipt], { env })).code, 2, 'the lease has ended')
  const nothing = await rouse(['pop', queue], { env })
  t.match(nothing, { code: 4, out: '{"messages":[]}\n' })
})

test('a receipt that begins with a dash is not parsed as a flag', { timeout }, async (t) => {
  for (const receipt of [`-${'A'.repeat(47)}`, `-s${'A'.repeat(46)}`, `--${'A'.repeat(46)}`]) {
    for (const args of [
      ['ack', receipt],
      ['ack', receipt, '--status', 'failed'],
    ]) {
      t.match(await rouse(args, { env }), { code: 2, err: /lease/ }, args.join(' '))
    }
  }
})

test('ack acknowledges one message, and with --all everything the pop still holds', {
  timeout,
}, async (t) => {
  const queue = unique()
  await rouse(['push', queue, '-'], { env, input: '1\n2\n3\n4\n' })
  const popped = await rouse(['pop', queue, '-n', '4', '--json'], { env })
  const { leaseId, messages: leased } = JSON.parse(popped.out)
  const receipts = leased.map(({ receipt }: Json) => receipt)
  const completed = async () => {
    const { messages } = await node.call('GET', `/api/v1/messages?queue=${queue}&status=completed`)
    return messages.map(({ data }: Json) => data).sort()
  }
  const one = await rouse(['ack', receipts[1]], { env })
  t.match(one, { code: 0, out: /"success":true/ })
  t.same(await completed(), [2], 'the others are still held')
  t.match(await rouse(['ack', receipts[1]], { env }), { code: 2, err: /lease lost/ })
  t.match(await rouse(['ack', leaseId], { env }), { code: 2, err: /receipt is a leaseId/ })
  t.equal((await rouse(['ack', receipts[0], '--status', 'dlq'], { env })).code, 0)
  t.equal((await rouse(['ack', leaseId, '--all'], { env })).code, 0)
  t.same(await completed(), [2, 3, 4])
  const { messages } = await node.call('GET', `/api/v1/dlq?queue=${queue}`)
  t.match(messages, [{ data: 1 }])
})

test('pop prints the ack command for each message and the one for all', {
  timeout,
  skip: skipTerminal,
}, async (t) => {
  const queue = unique()
  await rouse(['push', queue, '-'], { env, input: '1\n2\n' })
  const out = plain((await rouseOnTerminal(['pop', queue, '-n', '2'], { env })).out)
  const acks = [...out.matchAll(/acknowledge with: rouse ack (\S+)\n/g)].map(([, one]) => one)
  t.equal(new Set(acks).size, 2)
  t.match(out, /acknowledge all 2 with: rouse ack [0-9a-f-]{36} --all\n/)
  const acked = plain((await rouseOnTerminal(['ack', acks[1] as string], { env })).out)
  t.match(acked, /^1 of 1 completed\n/)
})

test('a redrive accepts the id that the list shows and the id of the message', {
  timeout,
}, async (t) => {
  const queue = unique()
  await rouse(['push', queue, '-'], { env, input: '1\n2\n3\n' })
  const popped = await rouse(['pop', queue, '-n', '3', '--json'], { env })
  const [{ leaseId }] = JSON.parse(popped.out).messages
  await node.call('POST', '/api/v1/ack/batch', { leaseId, status: 'dlq' })
  const letters = JSON.parse((await rouse(['dlq', 'list', queue], { env })).out).deadLetters
  const byData = new Map(letters.map((letter: Json) => [letter.data, letter]))
  const [first, second, third] = [1, 2, 3].map((data) => byData.get(data) as Json)
  const redrive = (id: string) => rouse(['dlq', 'redrive', queue, '--id', id, '--dry-run'], { env })
  for (const id of [first.id, second.letterId, third.transactionId]) {
    const { code, out } = await redrive(id)
    t.match({ code, total: JSON.parse(out).total }, { code: 0, total: 1 }, id)
  }
  t.match(await redrive('999999999'), { code: 4, err: /no dead letter of .+ has the id 999999999/ })
  t.equal((await rouse(['dlq', 'redrive', queue, '--id', first.id], { env })).code, 0)
  const again = await rouse(['pop', queue, '--wait', '10', '--json'], { env })
  t.match(JSON.parse(again.out).messages, [{ data: 1 }])
})

test('push reads lines from standard input and payloads from files', { timeout }, async (t) => {
  const queue = unique()
  const folder = await mkdtemp(join(tmpdir(), 'rouse-cli-'))
  t.teardown(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'one.json'), '"from a file"')
  t.equal((await rouse(['push', queue, `@${join(folder, 'one.json')}`], { env })).code, 0)
  const lines = await rouse(['push', queue, '-'], { env, input: '1\n\n{"n":2}\n' })
  t.equal(JSON.parse(lines.out).length, 2)
  const popped = await rouse(['pop', queue, '-n', '10', '--ack'], { env })
  const data = JSON.parse(popped.out).messages.map((message: { data: unknown }) => message.data)
  t.same(data, ['from a file', 1, { n: 2 }])
  t.match(await rouse(['push', queue, '-'], { env, input: '1\nx\n' }), {
    code: 1,
    err: /line 2 is not JSON/,
  })
  t.match(await rouse(['push', queue, '@nowhere'], { env }), { code: 1, err: /nowhere/ })
})

test('push splits many lines into several requests and reports how many were stored on failure', {
  timeout,
}, async (t) => {
  const queue = unique()
  const large = JSON.stringify('x'.repeat(6_000))
  const input = `${Array.from({ length: 900 }, () => large).join('\n')}\n`
  const all = await rouse(['push', queue, '-'], { env, input })
  t.equal(all.code, 0, all.err)
  t.equal(JSON.parse(all.out).length, 900, '5.4 MB, where a request may have 4 MiB')

  const tooLarge = JSON.stringify('x'.repeat(2_000_000))
  const lines = [...Array.from({ length: 1_000 }, (_, i) => i), tooLarge, 1].join('\n')
  const some = await rouse(['push', unique(), '-'], { env, input: lines })
  t.equal(some.code, 2)
  t.match(
    some.err,
    /^rouse: the first 1000 of 1002 messages were stored, then: .*\(payload_too_large\)\n$/,
  )
})

test('numbers that JavaScript cannot hold keep all their digits', { timeout }, async (t) => {
  const queue = unique()
  const payload =
    '{"id":12345678901234567890,"far":[-1e400,0.1234567890123456789,"\\\\\\"1e400"],"small":1}'
  t.equal((await rouse(['push', queue, payload], { env })).code, 0)
  t.equal((await rouse(['push', queue, '-'], { env, input: `${payload}\n` })).code, 0)
  const stored = await (await fetch(`${node.url}/api/v1/messages?queue=${queue}`)).text()
  t.equal(stored.split(`"data":${payload},`).length, 3, stored)
  for (const args of [
    ['messages', queue],
    ['pop', queue, '-n', '2'],
  ]) {
    const { out } = await rouse(args, { env })
    t.equal(out.split(`"data":${payload},`).length, 3, out)
  }
})

test('a number that JavaScript cannot hold is shown unchanged on a terminal', {
  timeout,
  skip: skipTerminal,
}, async (t) => {
  const queue = unique()
  await rouse(['push', queue, '{"id":12345678901234567890}'], { env })
  const listed = plain((await rouseOnTerminal(['messages', queue], { env })).out)
  t.match(listed, /\{"id":12345678901234567890\}/)
  const popped = plain((await rouseOnTerminal(['pop', queue, '--ack'], { env })).out)
  t.match(popped, /"id": 12345678901234567890\n/)
})

test('lists are JSON in a pipe', { timeout }, async (t) => {
  const queue = unique()
  await rouse(['push', queue, '1'], { env })
  await rouse(['pop', queue, '--group', 'g'], { env })
  const listed = async (...args: string[]) => JSON.parse((await rouse(args, { env })).out)
  t.ok((await listed('queues', '--json')).some((one: { queue: string }) => one.queue === queue))
  t.match(await listed('queues', 'get', queue), { queue, options: { leaseTime: 300 } })
  t.ok((await listed('groups')).some((one: { queue: string }) => one.queue === queue))
  t.match(await listed('nodes'), [{ self: true, state: 'alive' }])
  t.match(await listed('stats'), { local_sidecars: 2 })
  t.match(await listed('stats', '--cluster'), { scope: 'cluster', totals: { nodes: 1 } })
  t.match(await listed('top', '--once'), { cluster: { totals: { nodes: 1 } } })
  t.match(await listed('queues', 'pause', queue), { paused: true })
  t.match(await listed('queues', 'resume', queue), { paused: false })
  t.match(await listed('queues', 'purge', queue, '--yes'), { purged: Number })
  t.match(await listed('queues', 'rm', queue, '--yes'), { deleted: true })
  t.match(await rouse(['queues', 'rm', queue], { env }), { code: 2, err: /there is no queue/ })
})

test('lists are tables on a terminal', { timeout, skip: skipTerminal }, async (t) => {
  const queue = unique('shown')
  await rouse(['push', queue, '1'], { env })
  const { out } = await rouseOnTerminal(['queues'], { env })
  const lines = plain(out).split('\n')
  t.match(lines[0], /^QUEUE +READY {2}LEASED .* CONSUMERS +IN\/s +OUT\/s +OLDEST {2}STATE$/)
  t.ok(lines.some((line) => line.startsWith(`${queue} `) && line.endsWith(' no consumers')))
  t.match(
    plain((await rouseOnTerminal(['pop', queue, '--ack'], { env })).out),
    /^[0-9a-f-]{36} {2}attempt 1\n1/m,
  )
  t.match(
    plain((await rouseOnTerminal(['push', queue, '{}'], { env })).out),
    /^queued {2}[0-9a-f-]{36}\n/,
  )
  t.match(plain((await rouseOnTerminal(['nodes'], { env })).out), /^NODE +STATE +URL +VERSION/)
  t.match(
    plain((await rouseOnTerminal(['top', '--once'], { env })).out),
    /rouse {2}http\S+ {2}1 node /,
  )
  t.match(plain((await rouseOnTerminal(['doctor'], { env })).out), /^ok {3}http/)
  t.match(await rouseOnTerminal(['queues', '--json'], { env }), { out: /^\[\{"queue":/ })
})

test('bench --verify finds nothing lost, duplicated or out of order', { timeout }, async (t) => {
  const { code, out, err } = await rouse(['bench', '--seconds', '1', '--verify', '--json'], { env })
  t.equal(code, 0, err)
  const stats = JSON.parse(out)
  t.match(stats, { lost: 0, duplicated: 0, outOfOrder: 0, endToEndMs: { p99: Number } })
  t.ok(stats.pushed > 0 && stats.pushed === stats.consumed)
  const { out: queues } = await rouse(['queues'], { env })
  t.notMatch(queues, /rouse-bench/, 'it cleans up')
})

test('an output that cannot be written is one line and an exit code, a closed pipe is neither', {
  timeout,
  skip: existsSync('/dev/full') ? false : 'there is no /dev/full',
}, async (t) => {
  const shell = promisify(execFile)
  const at = { env: { ...process.env, ...env } }
  const full = shell('sh', ['-c', `${process.execPath} ${bin} queues > /dev/full`], at)
  await t.rejects(full, { code: 2, stderr: 'rouse: standard output cannot be written (ENOSPC)\n' })
  const closed = `${process.execPath} ${bin} queues | true; ${process.execPath} ${bin} --help | head -n 1`
  t.match(await shell('sh', ['-c', closed], at), { stderr: '', stdout: /^Usage/ })
})

test('apply creates and changes queues from a file', { timeout }, async (t) => {
  const queue = unique()
  const input = `queues:\n  - queue: ${queue}\n    options: { leaseTime: 42, retryBackoffMs: [0, 10] }\n`
  const dry = JSON.parse((await rouse(['apply', '-f', '-', '--dry-run'], { env, input })).out)
  t.match(dry, { dryRun: true, queues: [{ queue, changed: { leaseTime: { to: 42 } } }] })
  t.match(await rouse(['queues', 'get', queue], { env }), { code: 2 })
  t.equal((await rouse(['apply', '-f', '-'], { env, input })).code, 0)
  const again = JSON.parse((await rouse(['apply', '-f', '-'], { env, input })).out)
  t.same(again.queues, [{ queue, changed: {} }])
  t.match(await rouse(['apply', '-f', '-'], { env, input: 'queues: 3' }), {
    code: 1,
    err: /must contain/,
  })
  const other = unique()
  const wrong = (options: string) =>
    `queues:\n  - queue: ${other}\n  - queue: ${queue}\n    options: { ${options} }\n`
  for (const [options, err] of [
    ['retrylimit: 5', /^rouse: queue-\d+: .*did you mean retryLimit\?.*; nothing was changed/],
    ['leaseTime: long', /^rouse: queue-\d+: leaseTime .*; nothing was changed/],
  ] as const) {
    for (const args of [
      ['apply', '-f', '-', '--dry-run'],
      ['apply', '-f', '-'],
    ]) {
      t.match(await rouse(args, { env, input: wrong(options) }), { code: 2, err }, options)
    }
  }
  t.match(await rouse(['queues', 'get', other], { env }), { code: 2 }, 'not created')
})

test('doctor checks and migrate migrates the database', { timeout }, async (t) => {
  const database = { ...env, ROUSE_DATABASE_URL: node.database.url }
  const doctor = await rouse(['doctor'], { env: database })
  const findings = JSON.parse(doctor.out) as { check: string; state: string }[]
  for (const check of ['ready', 'mode', 'version', 'schema', 'listen', 'clock', 'files']) {
    t.ok(
      findings.some((one) => one.check === check),
      check,
    )
  }
  const { out, code } = await rouse(['migrate', '--dry-run'], { env: database })
  t.equal(code, 0)
  t.match(JSON.parse(out), { dryRun: true, applied: [] })
  t.match(await rouse(['migrate'], { env }), { code: 1, err: /ROUSE_DATABASE_URL/ })
})

test('doctor and migrate use the one of several servers that accepts writes', {
  timeout,
}, async (t) => {
  const { host } = new URL(node.database.url)
  const url = node.database.url.replace(host, `127.0.0.1:1,${host}`)
  const several = { env: { ...env, ROUSE_DATABASE_URL: url } }
  t.match(JSON.parse((await rouse(['migrate', '--dry-run'], several)).out), { applied: [] })
  const findings = JSON.parse((await rouse(['doctor'], several)).out) as { check: string }[]
  t.ok(findings.some(({ check }) => check === 'version'))
  const wrong = { env: { ...env, ROUSE_DATABASE_URL: `${url}?target_session_attrs=standby` } }
  t.match((await rouse(['doctor'], wrong)).out, /target_session_attrs=standby/)
})

test('an error is one line and an exit code', { timeout }, async (t) => {
  for (const [args, code, err] of [
    [['pusch', 'q', '1'], 1, /unknown command 'pusch'\n\(Did you mean push\?\)/],
    [['push', 'q'], 1, /missing required argument 'json'/],
    [['push', 'q', 'text'], 1, /not JSON; a string needs double quotes/],
    [['pop', 'q', '--wait', 'long'], 1, /Write a duration/],
    [['pop', 'q', '--btach', '3'], 1, /unknown option '--btach'\n\(Did you mean --batch\?\)/],
    [['queues', 'lst'], 1, /unknown command 'lst'\n\(Did you mean list\?\)/],
    [['messages', 'lst', 'q'], 1, /unknown command 'lst'\n\(Did you mean list\?\)/],
    [['queues', 'list', 'q'], 1, /too many arguments/],
    [['ack', 'x', '--status', 'done'], 1, /--status must be one of/],
    [['completion', 'tcsh'], 1, /bash, zsh, fish/],
    [
      ['queues', '--url', 'http://127.0.0.1:9'],
      2,
      /^rouse: no node answers at http:\/\/127.0.0.1:9/,
    ],
    [['queues', '--url', 'nonsense'], 1, /is not a URL of a node/],
    [['doctor', '--url', 'http://127.0.0.1:9'], 5, /problems? found/],
    [['push', 'x'.repeat(300), '1'], 2, /rouse: .+ \(invalid_request\)/],
  ] as const) {
    const run = await rouse(args, { env })
    t.equal(run.code, code, args.join(' '))
    t.match(run.err, err)
  }
})

test('every verb has help with an example', async (t) => {
  const verbs = createProgram().commands.flatMap((command) => [command, ...command.commands])
  for (const command of verbs) {
    if (command.name() === 'help' || command.name() === '__complete') continue
    let text = ''
    command.configureOutput({ writeOut: (part) => (text += part) })
    command.outputHelp()
    t.match(text, /Example:\n {2}\$ /, command.name())
  }
})

test('the start of the program loads no part of the broker, the client or the database driver', async (t) => {
  const packages = new Set<string>()
  const seen = new Set<string>()
  const follow = (file: URL): void => {
    if (seen.has(file.href)) return
    seen.add(file.href)
    const text = readFileSync(file, 'utf8')
    for (const [, name = ''] of text.matchAll(
      /^(?:import|export) (?!type )[^;]*?from '([^']+)'/gm,
    )) {
      if (name.startsWith('.')) follow(new URL(name, file))
      else packages.add(name.replace(/^node:.*/, 'node'))
    }
  }
  follow(new URL('../src/main.ts', import.meta.url))
  t.ok(seen.size > 30)
  t.same([...packages].sort(), ['commander', 'node', 'picocolors'])
})

test('help shows the options of every verb, and no secrets', { timeout }, async (t) => {
  const secret = 'postgres://rouse:swordfish@db/rouse'
  const secrets = { ROUSE_URL: 'http://ann:swordfish@127.0.0.1:1', ROUSE_DATABASE_URL: secret }
  for (const args of [
    ['--help'],
    ['migrate', '--help'],
    ['doctor', '--help'],
    ['bench', '--help'],
  ]) {
    const { code, out } = await rouse(args, { env: { ...secrets, ROUSE_LISTEN_URL: secret } })
    t.equal(code, 0)
    t.match(out, /--url <url>/, args.join(' '))
    t.notMatch(out, /swordfish/, args.join(' '))
  }
  t.match((await rouse(['bench', '--help'])).out, /\(default: 10s\)/)
  const { code, out } = await rouse(['serve', '--help'])
  t.equal(code, 0)
  t.match(out, /^Usage: rouse serve/)
  t.match(out, /--port +ROUSE_PORT {2}4600\n/)
  t.match(await rouse(['--version']), { code: 0, out: /^\d+\.\d+\.\d+\n$/ })
})

test('rouse serve runs a node', { timeout }, async (t) => {
  const { code, out } = await rouse(['serve', '--check-config', '--port=4711'], {
    env: { ROUSE_DATABASE_URL: node.database.url },
  })
  t.equal(code, 0)
  t.match(JSON.parse(out), { ROUSE_PORT: 4711 })
  t.match(await rouse(['serve', '--prot=1'], { env: { ROUSE_DATABASE_URL: node.database.url } }), {
    code: 1,
    err: /did you mean --port/,
  })
})
