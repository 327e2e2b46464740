// Producers that continue during a failover, and the responses that they get.
import { Agent, request } from 'node:http'

export interface FailoverLoad {
  /** Every payload whose push got 201, with the time of the response, in order. */
  readonly answered: readonly { readonly payload: number; readonly atMs: number }[]
  /** The number of pushes with an unknown outcome. */
  readonly unknown: number
  stop(): Promise<void>
}

const pauseMs = 10

/** The next payload: payloads are unique within a run. */
let next = 0

export function startFailoverLoad(url: string, queue: string, producers: number): FailoverLoad {
  const agent = new Agent({ keepAlive: true })
  const answered: { payload: number; atMs: number }[] = []
  let unknown = 0
  let running = true

  async function produce(): Promise<void> {
    while (running) {
      const payload = next++
      const items = [{ queue, partition: String(payload % producers), payload }]
      const { status, code } = await push(url, agent, { items })
      if (status === 201) answered.push({ payload, atMs: performance.now() })
      else {
        if (code === 'outcome_unknown') unknown += 1
        await new Promise((resolve) => setTimeout(resolve, pauseMs))
      }
    }
  }
  const all = Array.from({ length: producers }, produce)
  return {
    answered,
    get unknown() {
      return unknown
    },
    async stop() {
      running = false
      await Promise.all(all)
      agent.destroy()
    },
  }
}

function push(
  url: string,
  agent: Agent,
  body: unknown,
): Promise<{ status: number; code?: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const asked = request(`${url}/api/v1/push`, { method: 'POST', agent, headers }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (part: string) => {
        text += part
      })
      answer.on('end', () => {
        const status = answer.statusCode ?? 0
        resolve(status === 201 ? { status } : { status, code: JSON.parse(text).code })
      })
    })
    asked.on('error', reject)
    asked.end(JSON.stringify(body))
  })
}
