// `npm run shape` shows how the source is laid out, and how many files one push passes through.
//
// Files and lines are counted per folder. The path of a push is measured: a warm node with one worker, real
// PostgreSQL, and V8's precise coverage from just before a push until shortly after its response, or until its
// delivery to a waiter on the same node has arrived. Timers fire meanwhile, so only files that were entered in
// every trial count.
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { root } from './run.mjs'
import { setup } from './setup.mjs'

const trials = 12
/** So that the primary's part is included: the worker responds before the primary has handled the hint. */
const afterMs = 100

await setup()
printLayout()
const node = await startTracedNode()
try {
  await node.push('warm')
  await printPush()
  await printPushToWaiter()
} finally {
  await node.stop()
}

function printLayout() {
  const folders = new Map()
  for (const part of ['apps', 'packages', 'migrations', 'scripts', 'test'])
    collect(join(root, part), folders)
  let [files, lines] = [0, 0]
  console.log('files  lines  folder')
  for (const [folder, found] of [...folders].sort(([one], [other]) => one.localeCompare(other))) {
    if (found.files > 0)
      console.log(`${pad(found.files, 5)} ${pad(found.lines, 6)}  ${relative(root, folder)}`)
    files += found.files
    lines += found.lines
  }
  const most = [...folders].sort(([, one], [, other]) => other.files - one.files)[0]
  console.log(
    `${files} files, ${lines} lines; most in one folder: ${most[1].files} (${relative(root, most[0])})`,
  )
}

function collect(folder, folders) {
  const own = { files: 0, lines: 0 }
  folders.set(folder, own)
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory() && !['node_modules', 'dist', '.turbo', '.tap'].includes(entry.name))
      collect(path, folders)
    if (!entry.isFile() || !/\.(ts|mjs|sql)$/.test(entry.name)) continue
    own.files += 1
    own.lines += readFileSync(path, 'utf8').split('\n').length - 1
  }
}

async function printPush() {
  const seen = []
  for (let trial = 0; trial < trials; trial += 1) {
    await node.take()
    await node.push('empty')
    await sleep(afterMs)
    seen.push(await node.take())
  }
  print('one push', seen)
}

async function printPushToWaiter() {
  const seen = []
  await node.push('waited')
  await node.ack(await node.pop('waited'))
  for (let trial = 0; trial < trials; trial += 1) {
    const popped = node.pop('waited')
    await sleep(300)
    await node.take()
    await Promise.all([node.push('waited'), popped])
    seen.push(await node.take())
    await node.ack(await popped)
  }
  print('one push to one waiter on the node', seen)
}

/** Prints the counts but does not assert them: a layout is not a test. */
function print(title, seen) {
  const always = inAll(seen.map(({ files }) => files))
  const calls = seen.map(({ handOvers }) => handOvers.length).sort((one, other) => one - other)
  const typical = seen.find(({ handOvers }) => handOvers.length === calls[trials >> 1])
  console.log(
    `\n${title}: ${always.length} files; ${calls[trials >> 1]} calls from one sidecar file into another`,
  )
  for (const file of always) console.log(`  ${file}`)
  for (const call of typical.handOvers) console.log(`  ${call}`)
}

function inAll(lists) {
  return lists[0].filter((file) => lists.every((list) => list.includes(file))).sort()
}

async function startTracedNode() {
  const { startEmbeddedPostgres, freePort } = await import('../packages/database/dist/index.js')
  const folder = mkdtempSync(join(tmpdir(), 'rouse-shape-'))
  const server = await startEmbeddedPostgres()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const child = spawn(process.execPath, [join(root, 'apps/broker/dist/main.js')], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      NODE_OPTIONS: `--import=${new URL('shape/trace-hook.mjs', import.meta.url).href}`,
      SHAPE_FOLDER: folder,
      ROUSE_DATABASE_URL: server.url,
      ROUSE_PORT: String(port),
      ROUSE_WORKERS: '1',
      ROUSE_LOG_LEVEL: 'error',
    },
  })
  while ((await fetch(`${url}/ready`).catch(() => undefined))?.status !== 200) await sleep(50)
  const pids = [child.pid, ...childrenOf(child.pid)]
  let taken = 0
  return {
    async push(queue) {
      const body = JSON.stringify({ items: [{ queue, payload: { some: 'payload' } }] })
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`${url}/api/v1/push`, { method: 'POST', headers, body })
      if (answer.status !== 201) throw new Error(`push: ${answer.status} ${await answer.text()}`)
      await answer.arrayBuffer()
    },
    async pop(queue) {
      const answer = await fetch(`${url}/api/v1/pop/queue/${queue}?wait=true&timeout=20000`)
      if (answer.status !== 200) throw new Error(`pop: ${answer.status} ${await answer.text()}`)
      return (await answer.json()).messages[0]
    },
    async ack({ transactionId, partitionId, leaseId }) {
      const body = JSON.stringify({ transactionId, partitionId, leaseId })
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`${url}/api/v1/ack`, { method: 'POST', headers, body })
      if (answer.status !== 200) throw new Error(`ack: ${answer.status} ${await answer.text()}`)
      await answer.arrayBuffer()
    },
    async take() {
      const files = pids.map((pid) => join(folder, `${pid}-${taken}.json`))
      taken += 1
      for (const pid of pids) process.kill(pid, 'SIGUSR2')
      return merged(await Promise.all(files.map(readWhenThere)))
    },
    async stop() {
      child.kill('SIGTERM')
      await new Promise((resolve) => child.once('exit', resolve))
      await server.stop()
      rmSync(folder, { recursive: true })
    },
  }
}

function childrenOf(pid) {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean)
    .map(Number)
}

async function readWhenThere(file) {
  for (;;) {
    try {
      return JSON.parse(readFileSync(file, 'utf8'))
    } catch (error) {
      if (error.code !== 'ENOENT') throw error
      await sleep(5)
    }
  }
}

function merged(parts) {
  const ours = new Set()
  for (const { files } of parts) {
    for (const url of files.filter((file) => file.startsWith('file:') && file.includes('/dist/'))) {
      const path = relative(root, fileURLToPath(url))
      if (!path.startsWith('..') && !path.includes('node_modules'))
        ours.add(path.replace('/dist/', '/src/').replace(/js$/, 'ts'))
    }
  }
  return { files: [...ours], handOvers: parts.flatMap(({ handOvers }) => handOvers) }
}

function pad(value, width) {
  return String(value).padStart(width)
}
