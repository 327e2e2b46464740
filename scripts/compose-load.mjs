// Producers and consumers that go through the balancer, and an account of what became of each message and request.
import { setTimeout as delay } from 'node:timers/promises'
import { ack, ask, pop, until } from './compose-http.mjs'

const producers = 3
const consumers = 4
const partitions = 8
const itemsPerPush = 3
const retryMs = 50
/** Room for a node to start beside it, on two cores. */
const pauseMs = 20
const drainMsMax = 60_000

export class Load {
  #url
  #queue
  #forgiven
  #leaseSeconds
  #acknowledged = new Set()
  #popped = new Set()
  #faults = []
  #closed = 0
  #retried = 0
  #repeated = 0
  #producing = true
  #consuming = true
  #produced
  #consumed

  /** `forgiven` are statuses that a client of a cluster under this fault has to try again after. */
  constructor({ url, queue, forgiven, leaseSeconds }) {
    this.#url = url
    this.#queue = queue
    this.#forgiven = forgiven
    this.#leaseSeconds = leaseSeconds
  }

  async start() {
    const body = { queue: this.#queue, options: { leaseTime: this.#leaseSeconds, retryLimit: 100 } }
    await ask(`${this.#url}/api/v1/configure`, { body })
    this.#produced = Promise.all(Array.from({ length: producers }, (_, i) => this.#produce(i)))
    this.#consumed = Promise.all(Array.from({ length: consumers }, () => this.#consume()))
  }

  get acknowledgedCount() {
    return this.#acknowledged.size
  }

  /** Resolves when so many more were both acknowledged and popped. */
  async progress(count) {
    const pushed = this.#acknowledged.size + count
    const popped = this.#popped.size + count
    await until(
      `${count} more messages through the balancer`,
      () => this.#acknowledged.size >= pushed && this.#popped.size >= popped,
    )
  }

  /** Ends it without an account, where there is nothing more to learn. Safe after `finish`. */
  abandon() {
    this.#producing = false
    this.#consuming = false
  }

  /** Ends it, and throws unless every acknowledged message came out and no request failed. */
  async finish() {
    this.#producing = false
    await this.#produced
    const missing = () => [...this.#acknowledged].filter((id) => !this.#popped.has(id))
    await until('all popped', () => missing().length === 0, drainMsMax).catch(() => {})
    this.#consuming = false
    await this.#consumed
    const lost = missing().length
    if (lost > 0) throw new Error(`${lost} of ${this.#acknowledged.size} messages were lost`)
    if (this.#faults.length > 0) {
      throw new Error(`${this.#faults.length} requests failed, the first with ${this.#faults[0]}`)
    }
    return (
      `${this.#acknowledged.size} messages, none lost, ${this.#repeated} delivered again, ` +
      `${this.#closed} connections closed, ${this.#retried} requests refused`
    )
  }

  async #produce(producer) {
    let n = 0
    while (this.#producing) {
      n += 1
      const items = Array.from({ length: itemsPerPush }, (_, i) => ({
        queue: this.#queue,
        partition: `p${(n + i) % partitions}`,
        payload: { producer, n, i },
        transactionId: `${producer}-${n}-${i}`,
      }))
      // The ids make it safe to push again what may have been committed.
      while (!(await this.#attempt(() => ask(`${this.#url}/api/v1/push`, { body: { items } })))) {
        if (!this.#consuming) return
        await delay(retryMs)
      }
      for (const { transactionId } of items) this.#acknowledged.add(transactionId)
      await delay(pauseMs)
    }
  }

  async #consume() {
    const options = { timeoutMs: 2_000, batch: 10, partitions: 2 }
    while (this.#consuming) {
      const answer = await this.#attempt(() => pop(this.#url, this.#queue, options))
      const messages = answer?.json?.messages ?? []
      for (const { transactionId } of messages) {
        if (this.#popped.has(transactionId)) this.#repeated += 1
        this.#popped.add(transactionId)
      }
      if (messages.length > 0) await this.#attempt(() => ack(this.#url, messages))
      else if (answer === undefined) await delay(retryMs)
    }
  }

  /** The answer, or undefined where a client has to try again. */
  async #attempt(request) {
    try {
      const answer = await request()
      if (answer.status < 300) return answer
      if (this.#forgiven.includes(answer.status)) this.#retried += 1
      else this.#faults.push(`${answer.status} ${answer.text}`)
    } catch (error) {
      if (isClosed(error)) this.#closed += 1
      else this.#faults.push(error.message)
    }
    return undefined
  }
}

/** An HTTP client must expect the end of a connection that it keeps open. */
function isClosed(error) {
  return ['ECONNRESET', 'EPIPE'].includes(error.code)
}
