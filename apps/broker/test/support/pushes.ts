import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '@rouse/testkit'
import { apiOf } from './http.ts'

const queue = 'pushed'
const partitions = 5
const drainMsMax = 120_000
/** A pause between pushes, which leaves the cores to the nodes. */
const pauseMs = 5
/** The number of further pushes to each live node after the others died. */
const moreEach = 20

export interface Pushes {
  /** The number of pushes to this address that got 201. */
  acknowledged(url: string): number
  /** Continues for a while, then pops at this address until every acknowledged push was delivered. */
  drain(url: string): Promise<PushesAccount>
}

export interface PushesAccount {
  readonly acknowledged: number
  /** Pushes that were acknowledged but not delivered. */
  readonly missing: readonly string[]
  /** Addresses that no longer respond. */
  readonly gone: readonly string[]
  /** Statuses of responses other than 201. */
  readonly odd: readonly number[]
}

/**
 * Pushes to each address until its node dies, one push at a time. The outcome of the last push is unknown.
 */
export function startPushes(urls: readonly string[]): Pushes {
  const acknowledged = new Map<string, Set<string>>(urls.map((url) => [url, new Set()]))
  const gone = new Set<string>()
  const odd: number[] = []
  const at = (url: string) => acknowledged.get(url) as Set<string>
  let pushing = true
  const pushed = urls.map((url, i) => pushOn(url, `producer ${i}`))

  async function pushOn(url: string, name: string): Promise<void> {
    for (let n = 0; pushing && !gone.has(url); n += 1) {
      const payload = `${name}, push ${n}`
      const item = { queue, partition: `p${n % partitions}`, payload }
      const answer = await apiOf(url)
        .push(item)
        .catch(() => undefined)
      if (answer === undefined) gone.add(url)
      else if (answer.status === 201) at(url).add(payload)
      else odd.push(answer.status)
      await delay(pauseMs)
    }
  }

  return {
    acknowledged: (url) => at(url).size,
    async drain(url) {
      for (const living of acknowledged.keys()) {
        if (gone.has(living)) continue
        const enough = at(living).size + moreEach
        await eventually(() => at(living).size >= enough, { timeoutMs: drainMsMax })
      }
      pushing = false
      await Promise.all(pushed)
      const delivered = new Set<string>()
      const all = [...acknowledged.values()].flatMap((one) => [...one])
      const missing = () => all.filter((payload) => !delivered.has(payload))
      const isDrained = async () => {
        const { body } = await apiOf(url).pop(queue, '?batch=100&partitions=5&autoAck=true')
        for (const { data } of body?.messages ?? []) delivered.add(data)
        return missing().length === 0
      }
      await eventually(isDrained, { timeoutMs: drainMsMax }).catch(() => {})
      return { acknowledged: all.length, missing: missing(), gone: [...gone], odd }
    },
  }
}
