// Programs of users, as text: they run or compile in a folder outside the workspace.

export const esModule = `
import { createRequire } from 'node:module'
import { isRouseError, Rouse } from '@rouse/client'

const rouse = new Rouse({ urls: [process.env.ROUSE_URL] })
const queue = rouse.queue('from-esm')
await queue.push({ n: 1 })
const got = await new Promise((resolve) => queue.work(async (message) => resolve(message.data.n)))
await rouse.close()
const { RouseError } = createRequire(import.meta.url)('@rouse/client')
if (!isRouseError(new RouseError('closed', 'of the other module system'), 'closed')) throw new Error('not shared')
console.log(got === 1 ? 'ok' : got)
`

export const commonJs = `
const { RouseError, Rouse } = require('@rouse/client')

async function main() {
  const rouse = new Rouse({ urls: [process.env.ROUSE_URL] })
  const queue = rouse.queue('from-commonjs')
  await queue.push({ n: 1 })
  const got = await new Promise((resolve) => queue.work(async (message) => resolve(message.data.n)))
  await rouse.close()
  const esm = await import('@rouse/client')
  if (!(new esm.RouseError('closed', '') instanceof RouseError)) throw new Error('not shared')
  console.log(got === 1 ? 'ok' : got)
}
main()
`

export const typed = `
import { type Message, Rouse, RouseError } from '@rouse/client'
import { fromPg } from '@rouse/client/sql'
import { testRouse } from '@rouse/client/testing'

type Queues = { emails: { to: string } }
const rouse = new Rouse<Queues>({ urls: 'http://127.0.0.1:4600' })
export const executor = fromPg({ query: async () => ({ rows: [] }) })
export const inMemory = testRouse<Queues>()
export async function main(): Promise<void> {
  const { id } = await rouse.queue('emails').push({ to: 'ann' }, { delay: '10m' })
  const text: string = id
  // @ts-expect-error: a payload of another type
  await rouse.queue('emails').push({ to: 1 })
  rouse.queue('emails').work({ concurrency: 2 }, async (message: Message<{ to: string }>, context) => {
    context.signal.throwIfAborted()
    if (message.data.to === text) throw new RouseError('closed', 'an example')
  })
  await rouse.close()
}
`

/** Other runtimes of JavaScript, as packages with their binaries. Versions are pinned, as everything here is. */
export const runtimes = [
  {
    name: 'Bun',
    packages: {
      'linux-x64': ['@oven/bun-linux-x64@1.4.4'],
      'linux-arm64': ['@oven/bun-linux-aarch64@1.4.4'],
      'darwin-arm64': ['@oven/bun-darwin-aarch64@1.4.4'],
    },
    binary: 'bin/bun',
    args: [],
  },
  {
    name: 'Deno',
    packages: {
      'linux-x64': ['@deno/linux-x64-glibc@2.9.6'],
      'linux-arm64': ['@deno/linux-arm64-glibc@2.9.6'],
      'darwin-arm64': ['@deno/darwin-arm64@2.9.6'],
    },
    binary: 'deno',
    args: ['run', '--allow-env', '--allow-net', '--allow-read', '--node-modules-dir=manual'],
  },
]
