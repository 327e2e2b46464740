import type { ChaosClient } from '../clients/chaos-client.ts'
import { ackUntilAnswered, consume } from '../clients/consuming.ts'
import type { CallResult } from '../clients/outcomes.ts'
import { paced, pushUntilStored } from '../clients/producing.ts'
import type { RawClient, RawMessage } from '../clients/raw-client.ts'
import { clients, type Workload } from './workload.ts'

const queue = 'redrive'
/**
 * A few partitions are busy. In each of the many others, a dead letter is the last message of the log, and
 * retention removed that message long ago.
 */
const busyCount = 16
const quietCount = 400
const messagesPerSecond = 12
const sick = '!sick'
const sickShare = 0.25
const pauseMsMin = 1_000
const pauseMsMax = 2_500
const lettersMax = 100
const pollMs = 50
/** After this time, a request without a response has taken effect or never will. */
const unansweredMs = 7_000

/**
 * A quarter of the messages fail twice and become dead letters. An operator redrives them, some by id or all
 * at once; consumers fail, release or complete them. Completed messages are removed after a second, so that
 * dead letters outlive their messages.
 */
export const redrive: Workload = {
  name: 'redrive',
  queues: [{ queue, retryLimit: 1, retryBackoffMs: [0, 200], completedRetention: 1 }],
  clients: [
    ...clients(1, 'producer', (client) => {
      const raw = client.raw()
      return paced(client, messagesPerSecond * client.rate, () => {
        const v = `${client.newValue()}${client.random.next() < sickShare ? sick : ''}`
        const isBusy = client.random.next() < 0.5
        const partition = `r${client.random.below(isBusy ? busyCount : quietCount)}`
        return pushUntilStored(client, raw, [
          { queue, partition, payload: { v }, transactionId: v },
        ])
      })
    }),
    { name: 'operator', role: 'producer', run: operate },
    ...clients(4, 'consumer', (client, number) => {
      const raw = client.raw(number)
      const pop = { queue, batch: 8, partitions: 4 }
      return consume(client, raw, pop, (messages) => handle(client, raw, messages))
    }),
  ],
}

async function handle(
  client: ChaosClient,
  raw: RawClient,
  messages: readonly RawMessage[],
): Promise<void> {
  const { random } = client
  const ill = messages.filter(({ data }) => data.v.endsWith(sick))
  const well = messages.filter(({ data }) => !data.v.endsWith(sick))
  if (well.length > 0) await ackUntilAnswered(client, raw, well)
  const [first] = ill
  if (first === undefined) return
  const chance = random.next()
  if (chance < 0.25) await raw.release(first)
  else if (chance < 0.3) return
  else await ackUntilAnswered(client, raw, ill, chance < 0.5 ? 'completed' : 'failed')
}

async function operate(client: ChaosClient): Promise<void> {
  const raw = client.raw()
  while (!client.producing.aborted) {
    const pauseMs = pauseMsMin + client.random.below(pauseMsMax - pauseMsMin)
    await client.pause(pauseMs, client.producing)
    if (client.producing.aborted) return
    if (client.random.next() < 0.5) {
      await redriveAll(client, raw, {})
      continue
    }
    const letters = await raw.letters(queue, lettersMax)
    const ids = letters.map(({ id }) => id).filter(() => client.random.next() < 0.5)
    if (ids.length > 0) await redriveAll(client, raw, { ids })
  }
}

/** Ends when the dead letters were moved, or when it is certain that they will not be moved. */
async function redriveAll(client: ChaosClient, raw: RawClient, where: object): Promise<void> {
  const call = { kind: 'redrive', queue } as const
  const end = client.recorder.begin(call)
  const { outcome, body } = await raw.redrive(queue, where)
  if (outcome === 'fail') return end(call, { outcome })
  const id = (body as { id: string } | undefined)?.id
  if (id === undefined) await client.pause(unansweredMs, client.consuming)
  end(call, await untilDone(client, raw, id))
}

async function untilDone(
  client: ChaosClient,
  raw: RawClient,
  id: string | undefined,
): Promise<CallResult> {
  while (!client.consuming.aborted) {
    const state = id === undefined ? undefined : await raw.redriveState(id)
    if (state === 'done') return { outcome: 'ok' }
    if (id === undefined && (await noneRuns(client))) break
    await client.pause(pollMs, client.consuming)
  }
  return { outcome: 'unknown' }
}

async function noneRuns(client: ChaosClient): Promise<boolean> {
  const running = `select from rouse.redrives where queue = $1 and state = 'running'`
  const found = await client
    .sql()
    .query(running, [queue])
    .catch(() => undefined)
  return found?.rowCount === 0
}
