// A running cluster with its load generator, and what a run of it used.
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { familyCpuSeconds } from '../support/family-cpu.ts'
import { type BenchNodes, startNodes } from '../support/nodes.ts'
import { type Figures, figuresOf, type Sample } from './figures.ts'
import type { LoadOrder, LoadResult, LoadSetup } from './load.ts'

export interface Scenario {
  readonly description: string
  readonly nodes: number
  readonly consumers: number
  readonly partitions: number
  readonly via: LoadSetup['via']
  readonly ordering?: 'none'
}

const base = { nodes: 2, consumers: 12, partitions: 8, via: 'http' } as const

export const scenarios: Readonly<Record<string, Scenario>> = {
  base: { ...base, description: '2 nodes, 8 partitions, 12 consumers' },
  'ack-and-fetch': {
    ...base,
    via: 'ack-and-fetch',
    description: 'the same, with the ack in the request of the next pop',
  },
  'no-order': { ...base, partitions: 1, ordering: 'none', description: 'a queue without order' },
  'one-consumer': { ...base, consumers: 1, description: 'one consumer' },
  'three-nodes': { ...base, nodes: 3, description: '3 nodes' },
  sdk: { ...base, via: 'sdk', description: 'the client on both sides' },
}

export interface RunningScenario {
  measure(order: LoadOrder): Promise<Figures>
  stop(): Promise<void>
}

export async function openScenario(options: {
  readonly root: string
  readonly server: { readonly url: string; readonly pid: number }
  readonly databaseUrl?: string
  readonly scenario: Scenario
}): Promise<RunningScenario> {
  const { root, server, scenario } = options
  const nodes = await startNodes({
    root,
    databaseUrl: options.databaseUrl ?? server.url,
    count: scenario.nodes,
  })
  const queue = randomUUID()
  if (scenario.ordering !== undefined) await configure(nodes.urls, queue, scenario.ordering)
  const { consumers, partitions, via } = scenario
  const load = startLoad({ urls: nodes.urls, queue, consumers, partitions, via })
  await once(load, 'message')
  return {
    async measure(order) {
      await nodes.untilHealthy()
      const before = await sample(nodes, server.pid)
      load.send(order)
      const result = await answerOf(load)
      return figuresOf(before, await sample(nodes, server.pid), result)
    },
    async stop() {
      load.kill()
      await nodes.stop()
    },
  }
}

async function sample(nodes: BenchNodes, postgresPid: number): Promise<Sample> {
  // CPU first: reading the stats costs some.
  const cpu = { ...nodes.cpu(), postgres: familyCpuSeconds(postgresPid) }
  return { cpu, stats: await nodes.stats() }
}

async function configure(urls: readonly string[], queue: string, ordering: string): Promise<void> {
  const answer = await fetch(`${urls[0]}/api/v1/configure`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ queue, options: { ordering } }),
  })
  if (!answer.ok) throw new Error(`configure: ${answer.status} ${await answer.text()}`)
}

function startLoad(setup: LoadSetup): ChildProcess {
  return fork(fileURLToPath(new URL('./load.ts', import.meta.url)), [JSON.stringify(setup)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
}

function answerOf(load: ChildProcess): Promise<LoadResult> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void =>
      reject(new Error(`the load generator ended with ${code}`))
    load.once('exit', ended)
    load.once('message', (result: LoadResult) => {
      load.off('exit', ended)
      resolve(result)
    })
  })
}
