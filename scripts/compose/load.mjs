// Producers and consumers behind the balancer, while nodes are killed or restarted.
import { setTimeout as delay } from 'node:timers/promises'
import { Account } from './account.mjs'
import { ack, ask, pop, until } from './http.mjs'

const producers = 3
const consumers = 4
const partitions = 8
const itemsPerPush = 3
const retryMs = 50
/** Leaves enough CPU for a node to start during the load, on two cores. */
const pauseMs = 20
const drainMsMax = 60_000

export class Load {
  #url
  #queue
  #rules
  #account
  #producing = true
  #consuming = true
  #produced
  #consumed

  constructor({ url, queue, rules }) {
    this.#url = url
    this.#queue = queue
    this.#rules = rules
    this.#account = new Account(rules)
  }

  async start() {
    const options = { leaseTime: this.#rules.leaseSeconds, retryLimit: 100 }
    const { status, text } = await ask(`${this.#url}/api/v1/configure`, {
      body: { queue: this.#queue, options },
    })
    if (status !== 200) throw new Error(`configure: ${status} ${text}`)
    this.#produced = Promise.all(Array.from({ length: producers }, (_, i) => this.#produce(i)))
    this.#consumed = Promise.all(Array.from({ length: consumers }, () => this.#consume()))
  }

  /** Resolves when `count` more messages were both confirmed and popped. */
  async progress(count) {
    const { pushedCount, poppedCount } = this.#account
    await until(
      `${count} more messages through the balancer`,
      () =>
        this.#account.pushedCount >= pushedCount + count &&
        this.#account.poppedCount >= poppedCount + count,
    )
  }

  /** Stops the load without checking it. May be called after `finish`. */
  abandon() {
    this.#producing = false
    this.#consuming = false
  }

  /**
   * Stops the load. Throws unless the rules were kept, every confirmed message was delivered, and the queue
   * is empty.
   */
  async finish() {
    const account = this.#account
    this.#producing = false
    await this.#produced
    const isDone = async () => account.missingCount === 0 && (await this.#left()) === ''
    await until('the queue is empty', isDone, drainMsMax).catch(() => {})
    this.#consuming = false
    await this.#consumed
    const { faults, missingCount, pushedCount, repeated } = account
    const left = await this.#left()
    const wrong = [
      ...(missingCount > 0 ? [`${missingCount} of ${pushedCount} messages were lost`] : []),
      ...(faults.length > 0 ? [`${faults.length} faults, the first: ${faults[0]}`] : []),
      ...(left === '' ? [] : [`left behind: ${left}`]),
    ]
    if (wrong.length > 0) throw new Error(wrong.join('; '))
    return `${pushedCount} messages, none lost, ${repeated} delivered again, ${this.#rules.account()}`
  }

  async #produce(producer) {
    let n = 0
    while (this.#producing) {
      n += 1
      const items = Array.from({ length: itemsPerPush }, (_, i) => ({
        queue: this.#queue,
        partition: `p${(n + i) % partitions}`,
        payload: { producer, n, i },
        // The ids make it safe to repeat a push that may have been committed.
        transactionId: `${producer}-${n}-${i}`,
      }))
      const push = () => ask(`${this.#url}/api/v1/push`, { body: { items } })
      let answer = await this.#attempt(push)
      while (answer === undefined && this.#rules.repeatsPushes && this.#consuming) {
        await delay(retryMs)
        answer = await this.#attempt(push)
      }
      if (answer !== undefined) this.#account.pushed(items)
      await delay(pauseMs)
    }
  }

  async #consume() {
    const options = { timeoutMs: 2_000, batch: 10, partitions: 2 }
    while (this.#consuming) {
      const sentAtMs = performance.now()
      const answer = await this.#attempt(() => pop(this.#url, this.#queue, options))
      const messages = answer?.json?.messages ?? []
      this.#account.popped(messages, sentAtMs)
      if (messages.length > 0) {
        const acked = await this.#attempt(() => ack(this.#url, messages))
        if (acked !== undefined) this.#account.acked(messages, acked.json)
      } else if (answer === undefined) await delay(retryMs)
    }
  }

  /** The response; undefined if there is none and the rules allow that. */
  async #attempt(send) {
    try {
      return await this.#rules.attempt(send)
    } catch (error) {
      this.#account.faults.push(error.message)
      return undefined
    }
  }

  /** What the queue still holds for its consumers according to its stats; empty if nothing. */
  async #left() {
    const { status, json, text } = await ask(`${this.#url}/api/v1/resources/queues/${this.#queue}`)
    if (status !== 200) throw new Error(`resources: ${status} ${text}`)
    const counts = json.groups.flatMap(({ pending, inFlight, redeliveries, leasedLanes, dead }) =>
      Object.entries({ pending, inFlight, redeliveries, leasedLanes, dead }),
    )
    const held = counts.filter(([, count]) => count > 0)
    return held.map(([name, count]) => `${count} ${name}`).join(', ')
  }
}
