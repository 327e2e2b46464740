import type { Test } from 'tap'
import { apiOf } from './http.ts'
import { sharedBroker, unique } from './shared-broker.ts'

export interface Popped {
  readonly id: string
  readonly data: unknown
  readonly attempt: number
  readonly transactionId: string
  readonly partitionId: string
  readonly leaseId: string
}

/** Starts a node on a clock that tests can advance. Returns what the tests of queue options share. */
export async function optionsNode() {
  const node = await sharedBroker({ instrumented: true })
  const api = apiOf(node.url)

  /** Creates a queue with these options; returns its name. */
  async function queueWith(options: object, more: object = {}): Promise<string> {
    const queue = unique()
    const { body } = await api.post('/configure', { queue, options, ...more })
    if (body.configured !== true) throw new Error(JSON.stringify(body))
    return queue
  }

  /** Pushes to one partition, in order. */
  const pushAll = (queue: string, ...payloads: unknown[]) =>
    api.push(...payloads.map((payload) => ({ queue, partition: 'p', payload })))

  /** Pops once; returns the messages. */
  async function take(queue: string, query = ''): Promise<Popped[]> {
    const { body } = await api.pop(queue, query)
    return body?.messages ?? []
  }

  /** Pops with a wait, because the node first has to notice that the clock moved; returns the messages. */
  async function takeSoon(queue: string, query = '?'): Promise<Popped[]> {
    return take(queue, `${query}&wait=true&timeout=15000`)
  }

  const dataOf = (messages: readonly Popped[]) => messages.map(({ data }) => data)
  const fail = async (messages: readonly Popped[], more: object = {}) =>
    api.ack(messages[0] as Popped, 'failed', more)

  async function deadIn(queue: string): Promise<number> {
    return (await api.get(`/dlq?queue=${queue}`)).body.total
  }

  /** Returns the number of stored messages of a queue. */
  async function kept(queue: string): Promise<number> {
    return (await api.get(`/messages?queue=${queue}&limit=1000`)).body.messages.length
  }

  async function nothingYet(t: Test, queue: string, why: string): Promise<void> {
    t.equal((await api.pop(queue)).status, 204, why)
  }

  return { node, api, queueWith, pushAll, take, takeSoon, dataOf, fail, deadIn, kept, nothingYet }
}
