import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '@rouse/testkit'
import { type Ackable, ackOf, apiOf } from './http.ts'

/** The lease time, short so that a drain after a failover is short. */
const leaseSeconds = 2
const pushers = 4
/** The pause between pushes: some are in progress at any time, but few enough for a short drain. */
const pauseMs = 20
const drainMsMax = 120_000

export interface FailoverLoad {
  /** The payloads of pushes that got 201. */
  readonly acknowledged: ReadonlySet<number>
  /** Statuses of responses other than 201 and 503. */
  readonly odd: readonly number[]
  /** Resolves when the next push gets its response. */
  answeredAgain(timeoutMs: number): Promise<void>
  /** Stops pushing, and pops until every acknowledged push was delivered. Returns those that were not. */
  drain(): Promise<number[]>
}

/** Pushes and pops continuously, like clients that retry after a 503. */
export async function startFailoverLoad(url: string, queue: string): Promise<FailoverLoad> {
  const api = apiOf(url)
  const acknowledged = new Set<number>()
  const delivered = new Set<number>()
  const odd: number[] = []
  let next = 0
  let pushing = true
  let popping = true

  async function pushOn(): Promise<void> {
    while (pushing) {
      const payload = next++
      const { status } = await api.push({ queue, partition: `p${payload % 5}`, payload })
      if (status === 201) acknowledged.add(payload)
      else if (status !== 503) odd.push(status)
      await delay(pauseMs)
    }
  }
  async function popOn(): Promise<void> {
    while (popping) {
      const { status, body } = await api.pop(queue, '?batch=50&partitions=5')
      if (status !== 200) {
        await delay(pauseMs)
        continue
      }
      const messages = body.messages as (Ackable & { data: number })[]
      for (const { data } of messages) delivered.add(data)
      const acknowledgments = messages.map((one) => ({ ...ackOf(one), status: 'completed' }))
      await api.post('/ack/batch', { acknowledgments })
    }
  }
  await api.post('/configure', { queue, options: { leaseTime: leaseSeconds, retryLimit: 100 } })
  const pushes = Array.from({ length: pushers }, pushOn)
  const pops = popOn()
  return {
    acknowledged,
    odd,
    async answeredAgain(timeoutMs) {
      const before = acknowledged.size
      await eventually(() => acknowledged.size > before, { timeoutMs, intervalMs: 5 })
    },
    async drain() {
      pushing = false
      await Promise.all(pushes)
      const missing = () => [...acknowledged].filter((payload) => !delivered.has(payload))
      await eventually(() => missing().length === 0, { timeoutMs: drainMsMax }).catch(() => {})
      popping = false
      await pops
      return missing()
    },
  }
}
