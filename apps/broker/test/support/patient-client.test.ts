// The client for tests of rolling restarts: it retries once, and only if no byte of a response was received.
import { createServer, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { PatientClient } from './patient-client.ts'

const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'

/** A server that handles the first request with the first of `deeds`, and so on, and counts the requests. */
async function serverOf(t: Test, ...deeds: ((socket: Socket) => void)[]) {
  let asked = 0
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => {
      deeds[asked]?.(socket)
      asked += 1
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const client = new PatientClient(`http://127.0.0.1:${port}`)
  t.teardown(() => {
    client.close()
    server.close()
  })
  return { client, asked: () => asked }
}

const tell = (socket: Socket) => void socket.write(answer)
const end = (socket: Socket) => void socket.end()
const reset = (socket: Socket) => void socket.resetAndDestroy()
const tellAndReset = (bytes: string) => (socket: Socket) => {
  socket.write(bytes, () => socket.resetAndDestroy())
}

test('a request whose connection closed before any byte of the response is retried', async (t) => {
  for (const close of [end, reset]) {
    const { client, asked } = await serverOf(t, close, tell)
    t.equal((await client.ask('GET', '/')).status, 200)
    t.equal(asked(), 2)
    t.equal(client.retries, 1)
  }
})

test('bytes of earlier responses on the same connection do not prevent a retry', async (t) => {
  const { client, asked } = await serverOf(t, tell, end, tell)
  await client.ask('GET', '/')
  t.equal((await client.ask('GET', '/')).status, 200)
  t.equal(asked(), 3)
})

test('a request is retried once, not twice', async (t) => {
  const { client, asked } = await serverOf(t, end, reset, tell)
  await t.rejects(client.ask('GET', '/'))
  t.equal(asked(), 2)
})

test('a request with a partial response is not retried', async (t) => {
  const half = answer.slice(0, -1)
  const head = 'HTTP/1.1 200 OK\r\ncon'
  const deeds = [half, head, 'H'].map(tellAndReset)
  for (const deed of [...deeds, (socket: Socket) => void socket.end(half)]) {
    const { client, asked } = await serverOf(t, deed, tell)
    await t.rejects(client.ask('GET', '/'))
    t.equal(asked(), 1)
    t.equal(client.retries, 0)
  }
})

test('a refused connection is not retried', async (t) => {
  const client = new PatientClient('http://127.0.0.1:1')
  await t.rejects(client.ask('GET', '/'), { code: 'ECONNREFUSED' })
  t.equal(client.retries, 0)
})
