// The node under load, and the load generator process.
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { freePort } from '@rouse/testkit'
import type { LoadFigures, LoadJob } from './http-load.ts'

export interface BenchNode {
  readonly url: string
  readonly pid: number
  stop(): Promise<void>
}

/** The shipped program, with two workers. */
export async function startNode(databaseUrl: string): Promise<BenchNode> {
  const port = await freePort()
  const main = fileURLToPath(new URL('../../apps/broker/dist/main.js', import.meta.url))
  const child = spawn(process.execPath, [main], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      ROUSE_DATABASE_URL: databaseUrl,
      ROUSE_PORT: String(port),
      ROUSE_WORKERS: '2',
      ROUSE_LOG_LEVEL: 'error',
    },
  })
  const url = `http://127.0.0.1:${port}`
  while ((await fetch(`${url}/ready`).catch(() => undefined))?.status !== 200) {
    if (child.exitCode !== null) throw new Error(`the node ended with ${child.exitCode}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return {
    url,
    pid: child.pid as number,
    async stop() {
      if (child.exitCode !== null) return
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

export function startLoad(job: LoadJob): ChildProcess {
  return fork(fileURLToPath(new URL('./http-load.ts', import.meta.url)), [JSON.stringify(job)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
}

export async function finished(child: ChildProcess): Promise<LoadFigures> {
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  const [code] = (await once(child, 'close')) as [number]
  if (code !== 0) throw new Error(`the load generator ended with ${code}`)
  return JSON.parse(text) as LoadFigures
}

export async function onMessage(child: ChildProcess, wanted: string): Promise<void> {
  for (;;) {
    const [message] = (await once(child, 'message')) as [string]
    if (message === wanted) return
  }
}
