// The load generator, in its own process.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { LoadFigures, LoadJob } from './load.ts'

export function startLoad(job: LoadJob): ChildProcess {
  return fork(fileURLToPath(new URL('./load.ts', import.meta.url)), [JSON.stringify(job)], {
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
