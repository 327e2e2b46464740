import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { Story } from '../support/story.ts'
import { readHistory } from './history-reader.ts'
import { HistoryWriter, type SentCall } from './history-writer.ts'

const caller = { process: 'client', workload: 'plain' }

test('a written history reads back with its pushes, deliveries and acks', async (t) => {
  const { writer, path } = newFile(t)
  const push = pushOf('a', 10)
  writer.answered(writer.sent(push), {
    ...push,
    end: 12,
    outcome: 'ok',
    items: [{ ...item('a'), result: { status: 'queued', id: 'id a' } }],
  })
  const popped = new Story().pop('a', { at: 20 })
  const pop = { ...caller, kind: 'pop' as const, queue: 'jobs', group: 'g', waitMs: 0, start: 20 }
  const sentPop = writer.sent({ ...pop, leaseMs: 3_000, acks: [] })
  writer.answered(sentPop, {
    ...pop,
    leaseMs: 3_000,
    acks: [],
    end: 22,
    outcome: 'ok',
    messages: popped,
  })
  writer.close()

  const history = await readHistory([path])
  const [message] = [...history.messages()]
  t.equal(history.messageCount, 1)
  t.match(message?.pushes, [{ outcome: 'ok', status: 'queued', start: 10, end: 12 }])
  t.match(message?.deliveries, [{ attempt: 1, begins: 20, end: 22, expiresMin: 3_015 }])
  t.equal(message?.pushes[0]?.id, message?.deliveries[0]?.id, 'one id has one number')
})

test('a call that was sent and never answered is unknown', async (t) => {
  const { writer, path } = newFile(t)
  writer.sent(pushOf('a', 10))
  writer.close()
  const [message] = [...(await readHistory([path])).messages()]
  t.match(message?.pushes, [{ outcome: 'unknown', end: Number.POSITIVE_INFINITY }])
})

test('calls of a process that continues the file of a dead one are kept apart', async (t) => {
  const { writer, path } = newFile(t)
  writer.sent(pushOf('a', 10))
  const next = new HistoryWriter(path)
  const push = pushOf('b', 20)
  next.answered(next.sent(push), { ...push, end: 22, outcome: 'fail' })
  next.close()
  writer.close()
  const messages = [...(await readHistory([path])).messages()]
  t.strictSame(
    new Map(messages.map(({ value, pushes }) => [value, pushes[0]?.outcome])),
    new Map([
      ['b', 'fail'],
      ['a', 'unknown'],
    ]),
  )
})

test('an incomplete last line is dropped', async (t) => {
  const { writer, path } = newFile(t)
  writer.sent(pushOf('a', 10))
  writer.close()
  await appendFile(path, '{"sent":2,"kind":"pu')
  t.equal((await readHistory([path])).messageCount, 1)
})

test('a client killed with SIGKILL leaves every call it started', async (t) => {
  const folder = t.testdir({})
  const path = join(folder, 'killed.ndjson')
  const writer = fileURLToPath(new URL('history-writer.ts', import.meta.url))
  const script = `
    import { HistoryWriter } from ${JSON.stringify(writer)}
    const writer = new HistoryWriter(${JSON.stringify(path)})
    const push = ${JSON.stringify(pushOf('a', 10))}
    writer.answered(writer.sent(push), { ...push, end: 11, outcome: 'ok' })
    writer.sent(${JSON.stringify(pushOf('b', 12))})
    process.kill(process.pid, 'SIGKILL')
  `
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
  t.equal(signal, 'SIGKILL')
  const messages = [...(await readHistory([path])).messages()]
  t.strictSame(
    messages.map(({ value, pushes }) => [value, pushes[0]?.outcome]),
    [
      ['a', 'ok'],
      ['b', 'unknown'],
    ],
  )
})

function item(value: string) {
  return { queue: 'jobs', partition: 'p', value }
}

function pushOf(value: string, start: number): SentCall & { kind: 'push' } {
  return { ...caller, kind: 'push', by: 'http', start, items: [item(value)] }
}

function newFile(t: Test): { writer: HistoryWriter; path: string } {
  const path = join(t.testdir({}), 'client.ndjson')
  return { writer: new HistoryWriter(path), path }
}
