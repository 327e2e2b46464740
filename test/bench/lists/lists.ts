// `npm run bench -- lists [--queues 10000]`: how long the list of all queues and `/metrics` take on a node with one
// message in each of many queues.
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startEmbeddedPostgres } from '@rouse/database'
import { startNodes } from '../support/nodes.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const { values: flags } = parseArgs({ options: { queues: { type: 'string', default: '10000' } } })
const queues = Number(flags.queues)
const perPush = 1_000
const rounds = 30

const server = await startEmbeddedPostgres({ settings: { shared_buffers: '512MB' } })
const nodes = await startNodes({ root, databaseUrl: server.url, count: 1 })
try {
  const [url = ''] = nodes.urls
  for (let n = 0; n < queues; n += perPush) await push(url, n, Math.min(perPush, queues - n))
  await measure('list, first', `${url}/api/v1/queues?limit=10000`, 1)
  await measure('list', `${url}/api/v1/queues?limit=10000`, rounds)
  await measure('metrics, first', `${url}/metrics`, 1)
  await measure('metrics', `${url}/metrics`, rounds)
} finally {
  await nodes.stop()
  await server.stop()
}

async function push(url: string, first: number, count: number): Promise<void> {
  const items = Array.from({ length: count }, (_, i) => ({ queue: `q${first + i}`, payload: 1 }))
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ items })
  const response = await fetch(`${url}/api/v1/push`, { method: 'POST', headers, body })
  await response.text()
  if (!response.ok) throw new Error(`a push got ${response.status}`)
}

/** Measures until the last byte of the response; it is not parsed. */
async function measure(what: string, address: string, times: number): Promise<void> {
  const took: number[] = []
  let bytes = 0
  for (let i = 0; i < times; i += 1) {
    const startedMs = performance.now()
    const response = await fetch(address)
    bytes = (await response.arrayBuffer()).byteLength
    took.push(performance.now() - startedMs)
    if (!response.ok) throw new Error(`${what} got ${response.status}`)
  }
  took.sort((a, b) => a - b)
  const at = (share: number): string =>
    `${(took[Math.floor((times - 1) * share)] ?? 0).toFixed(0)} ms`
  console.log(`${what}: ${at(0.5)} (p90 ${at(0.9)}), ${bytes.toLocaleString('en')} bytes`)
}
