import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { PendingWrite, WriteQueue } from '../../src/writes/write-queue.ts'

type Write = PendingWrite<string, string>

/** Short, to keep the tests fast. No test expects an event before the timeout. */
const timeoutMs = 30

/** A queue of writes whose calls end when the test ends them. */
function held(options: { slots?: number; pendingMax?: number } = {}) {
  const calls: { writes: Write[]; inputs: string[]; end: () => void }[] = []
  const queue = new WriteQueue<string, string>({
    slots: options.slots ?? 1,
    patienceMs: 0,
    pendingMax: options.pendingMax ?? 100,
    countMax: 100,
    bytesMax: 100,
    timeoutMs,
    run: (batch) =>
      new Promise((end) => {
        const writes = batch.filter((write) => write.send())
        calls.push({ writes, inputs: writes.map(({ input }) => input), end })
      }),
  })
  return { queue, calls }
}

test('a sent write has an unknown outcome at its deadline, and its call continues', async (t) => {
  const { queue, calls } = held()
  await t.rejects(queue.submit('a'), { code: 'outcome_unknown' })
  let isIdle = false
  const idle = queue.idle().then(() => {
    isIdle = true
  })
  calls[0]?.writes[0]?.resolve('late')
  await new Promise(setImmediate)
  t.notOk(isIdle, 'its slot stays busy until the call ends')
  calls[0]?.end()
  await idle
})

test('a write that still waits at its deadline is refused and never sent', async (t) => {
  const { queue, calls } = held()
  const sent = queue.submit('a').catch(() => {})
  await t.rejects(queue.submit('b'), { code: 'database_unavailable' })
  await sent
  calls[0]?.end()
  await queue.idle()
  t.same(
    calls.map(({ inputs }) => inputs),
    [['a']],
  )
})

test('a write whose try left nothing behind is refused at its deadline and not retried', async (t) => {
  const { queue, calls } = held()
  const refused = t.rejects(queue.submit('a'), { code: 'database_unavailable' })
  calls[0]?.writes[0]?.undone()
  await refused
  t.notOk(calls[0]?.writes[0]?.send())
  calls[0]?.end()
})

test('writes are refused at once while every slot is overdue, and accepted again afterwards', async (t) => {
  const { queue, calls } = held({ slots: 2 })
  const unknown = ['a', 'b'].map((input) => queue.submit(input).catch(() => 'unknown'))
  await Promise.all(unknown)
  const begun = calls.length
  await eventually(async () => {
    const refusal = await queue.submit('c').catch((error: Error) => error.message)
    return refusal === 'PostgreSQL does not confirm writes'
  })
  t.equal(calls.length, begun)
  calls[0]?.end()
  await eventually(() => {
    queue.submit('d').catch(() => {})
    return calls.length > begun
  })
  t.same([...new Set(calls.slice(begun).flatMap(({ inputs }) => inputs))], ['d'])
  for (const call of calls) call.end()
})

test('a full queue refuses the next write', async (t) => {
  const { queue, calls } = held({ pendingMax: 1 })
  const waiting = ['a', 'b'].map((input) => queue.submit(input).catch(() => {}))
  await t.rejects(queue.submit('c'), { code: 'overloaded' })
  await Promise.all(waiting)
  calls[0]?.end()
})

test('a result that arrives while the process is paused wins over the deadline', async (t) => {
  const { far, near } = await socketPair(t)
  const { queue, calls } = held()
  near.on('data', () => {
    calls[0]?.writes[0]?.resolve('stored')
    calls[0]?.end()
  })
  const answer = queue.submit('a')
  far.write('x')
  blockEventLoop(10 * timeoutMs)
  t.equal(await answer, 'stored')
})

test('a deadline and a result at the same moment answer the write exactly once', async (t) => {
  for (let delayMs = timeoutMs - 4; delayMs <= timeoutMs + 4; delayMs += 1) {
    const answers: string[] = []
    const write = new PendingWrite<string, string>(
      'a',
      { count: 1, bytes: 0 },
      () => answers.push('stored'),
      () => answers.push('unknown'),
    )
    write.send()
    write.answerWithin(timeoutMs, () => {})
    await new Promise((resolve) => setTimeout(resolve, delayMs))
    write.resolve('b')
    write.reject(new Error('too late'))
    await new Promise((resolve) => setTimeout(resolve, 10))
    t.equal(answers.length, 1, `after ${delayMs} ms: ${answers[0]}`)
  }
})

/** Opens a connection, and returns both of its ends. */
async function socketPair(t: Test) {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const near = connect((server.address() as { port: number }).port, '127.0.0.1')
  const [[far]] = await Promise.all([once(server, 'connection'), once(near, 'connect')])
  t.teardown(() => {
    near.destroy()
    far.destroy()
    server.close()
  })
  return { far, near }
}

/** Blocks the event loop, and with it every timer. */
function blockEventLoop(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
