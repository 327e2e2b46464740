// The node under load.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { freePort } from '@rouse/testkit'

export interface BenchNode {
  readonly url: string
  readonly pid: number
  stop(): Promise<void>
}

/** Starts the built program with two workers. */
export async function startNode(databaseUrl: string): Promise<BenchNode> {
  const port = await freePort()
  const main = fileURLToPath(new URL('../../../apps/broker/dist/main.js', import.meta.url))
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
