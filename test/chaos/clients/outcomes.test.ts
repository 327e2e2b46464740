import { createServer } from 'node:net'
import { test } from 'tap'
import { httpTransport } from './http-transport.ts'
import { type CallResult, errorResult, responseResult } from './outcomes.ts'

const problem = (code: string): string => JSON.stringify({ code })

test('a request that the server refused has certainly had no effect', async (t) => {
  for (const code of ['overloaded', 'draining', 'database_unavailable']) {
    t.match(responseResult(503, problem(code), false), { outcome: 'fail', status: 503, code })
  }
  t.match(responseResult(409, problem('lease_lost'), false), {
    outcome: 'fail',
    code: 'lease_lost',
  })
  t.match(responseResult(429, '', false), { outcome: 'fail', status: 429 })
})

test('other errors of a server, and all of a balancer, prove nothing', async (t) => {
  t.match(responseResult(503, problem('outcome_unknown'), false), { outcome: 'unknown' })
  t.match(responseResult(500, problem('internal'), false), { outcome: 'unknown' })
  t.match(responseResult(503, '<html>no server</html>', false), { outcome: 'unknown', status: 503 })
})

test('a pop may have leased messages before it lost the database', async (t) => {
  t.match(responseResult(503, problem('database_unavailable'), true), { outcome: 'unknown' })
  t.match(responseResult(503, problem('draining'), true), { outcome: 'fail' })
})

test('a refused connection carried nothing; a broken one may have', async (t) => {
  const refused = createServer()
  const port = await listen(refused)
  await new Promise((resolve) => void refused.close(resolve))
  t.match(await ask(port), { outcome: 'fail', code: 'ECONNREFUSED' })

  const breaking = createServer((socket) => socket.once('data', () => socket.destroy()))
  t.teardown(() => breaking.close())
  t.match(await ask(await listen(breaking)), { outcome: 'unknown', code: 'ECONNRESET' })
})

test('an incomplete response counts as none', async (t) => {
  const cutting = createServer((socket) =>
    socket.once('data', () => socket.end('HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\n[{"i')),
  )
  t.teardown(() => cutting.close())
  t.match(await ask(await listen(cutting)), { outcome: 'unknown' })
})

async function ask(port: number): Promise<CallResult> {
  const transport = httpTransport()
  try {
    const { signal } = new AbortController()
    const url = new URL(`http://127.0.0.1:${port}/`)
    const answer = await transport.send({ method: 'POST', url, headers: {}, body: '{}', signal })
    return responseResult(answer.status, answer.text, false)
  } catch (error) {
    return errorResult(error)
  } finally {
    transport.close()
  }
}

async function listen(server: ReturnType<typeof createServer>): Promise<number> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return (server.address() as { port: number }).port
}
