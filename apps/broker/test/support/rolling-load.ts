import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '@rouse/testkit'
import { ackOf } from './http.ts'
import type { PatientAnswer, PatientClient } from './patient-client.ts'

const queue = 'q'
const producers = 6
const consumers = 6
/**
 * A pause between requests leaves the cores to the restarting nodes. Some requests are always in progress.
 */
const pauseMs = 5
/**
 * Longer than the test, so that no message is redelivered: a lost message or ack is then visible in `left`.
 */
const leaseSeconds = 600
const patience = { timeoutMs: 60_000 }

export interface RollingLoad {
  /** Transaction ids of the pushes that got 201. */
  readonly pushed: ReadonlySet<string>
  /** Transaction ids of delivered messages, in the order of delivery. */
  readonly delivered: readonly string[]
  /** A description of every failed request and refused ack. */
  readonly failures: readonly string[]
  /** Resolves when `count` more messages were pushed. */
  morePushed(count: number): Promise<void>
  /** Stops pushing, and stops popping when every message was delivered or no more arrive. */
  finish(): Promise<void>
  /** Counts what is left in the queue: uncompleted messages, leases, redeliveries and dead letters. */
  left(): Promise<Left>
}

export interface Left {
  readonly pending: number
  readonly inFlight: number
  readonly redeliveries: number
  readonly leasedLanes: number
  readonly dead: number
}

export const nothingLeft: Left = {
  pending: 0,
  inFlight: 0,
  redeliveries: 0,
  leasedLanes: 0,
  dead: 0,
}

/** Pushes, pops and acknowledges continuously, like clients that are not aware of the restarts. */
export async function startRollingLoad(client: PatientClient): Promise<RollingLoad> {
  const pushed = new Set<string>()
  const delivered: string[] = []
  const failures: string[] = []
  let producing = true
  let consuming = true

  async function ask(method: string, path: string, body?: unknown): Promise<PatientAnswer> {
    const answer = await client.ask(method, `/api/v1${path}`, body).catch((error: Error) => {
      return { status: 0, body: error.message }
    })
    if (!(answer.status >= 200 && answer.status < 300)) {
      failures.push(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    }
    return answer
  }

  async function produce(partition: string): Promise<void> {
    for (let i = 0; producing; i += 1) {
      const transactionId = `${partition}-${i}`
      const items = [{ queue, partition, payload: i, transactionId }]
      if ((await ask('POST', '/push', { items })).status === 201) pushed.add(transactionId)
      await delay(pauseMs)
    }
  }

  async function consume(): Promise<void> {
    const path = `/pop/queue/${queue}?batch=10&partitions=4&wait=true&timeout=2000`
    while (consuming) {
      const { status, body } = await ask('GET', path)
      if (status !== 200) continue
      const { messages } = body as { messages: Parameters<typeof ackOf>[0][] }
      for (const { transactionId } of messages) delivered.push(transactionId)
      const acknowledgments = messages.map((one) => ({ ...ackOf(one), status: 'completed' }))
      const acked = await ask('POST', '/ack/batch', { acknowledgments })
      if (acked.status !== 200) continue
      for (const result of acked.body) if (!result.success) failures.push(JSON.stringify(result))
    }
  }

  await ask('POST', '/configure', { queue, options: { leaseTime: leaseSeconds } })
  const produced = Promise.all(Array.from({ length: producers }, (_, i) => produce(`p${i}`)))
  const consumed = Promise.all(Array.from({ length: consumers }, consume))
  return {
    pushed,
    delivered,
    failures,
    async morePushed(count) {
      const enough = pushed.size + count
      await eventually(() => pushed.size >= enough, patience)
    },
    async finish() {
      producing = false
      await produced
      await eventually(() => delivered.length >= pushed.size, patience).catch(() => {})
      consuming = false
      await consumed
    },
    async left() {
      const { body } = await ask('GET', `/resources/queues/${queue}`)
      const [{ pending, inFlight, redeliveries, leasedLanes, dead }] = body.groups as [Left]
      return { pending, inFlight, redeliveries, leasedLanes, dead }
    },
  }
}
