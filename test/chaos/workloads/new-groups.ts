import type { ChaosClient } from '../clients/chaos-client.ts'
import { ackUntilAnswered, consume } from '../clients/consuming.ts'
import { paced, pushUntilStored } from '../clients/producing.ts'
import type { RawClient } from '../clients/raw-client.ts'
import { monotonicMs } from '../history/clock.ts'
import type { OperatorRecord, Outcome } from '../history/records.ts'
import { clients, type Workload } from './workload.ts'

const queue = 'news'
const founders = 'founders'
const partitionCount = 8
const messagesPerSecond = 8
/**
 * The intervals between a client's new groups grow, so that short runs have some groups and long ones still
 * get new ones near their end.
 */
const firstMs = 4_000
const growth = 3
const groupsMax = 6
const fromMsMax = 10_000
const lookMs = 1_000
const retryMs = 200
const keepForever = -1

/**
 * Groups that appear during the run and start at the first message, at the next one, or at a given time. Each
 * gets the messages of its subscription.
 */
export const newGroups: Workload = {
  name: 'new-groups',
  queues: [{ queue, groups: [founders], completedRetention: keepForever }],
  clients: [
    ...clients(1, 'producer', (client) => {
      const raw = client.raw()
      return paced(client, messagesPerSecond * client.rate, () => {
        const v = client.newValue()
        const partition = `n${client.random.below(partitionCount)}`
        return pushUntilStored(client, raw, [
          { queue, partition, payload: { v }, transactionId: v },
        ])
      })
    }),
    ...clients(1, 'consumer', (client) => consumeAs(client, client.raw(), founders)),
    ...clients(2, 'consumer', async (client, number) => {
      await Promise.all([makeGroups(client, number), consumeAll(client, number)])
    }).map((spec) => ({ ...spec, name: `new-${spec.name}` })),
  ],
}

async function makeGroups(client: ChaosClient, number: number): Promise<void> {
  let gapMs = firstMs
  for (let made = 0; made < groupsMax; made += 1) {
    await client.pause(gapMs * (0.5 + client.random.next()), client.producing)
    if (client.producing.aborted) return
    // If the client is killed here, the group is not requested again, because its start would be unknown.
    await begin(client, `${prefixOf(number)}${client.name.split('.').at(-1)}-${made}`)
    gapMs *= growth
  }
}

/**
 * Creates a group, either by a pop that is repeated until it succeeds or by one request to subscribe. The
 * request to subscribe is not repeated: it may still take effect without a response, and the second request
 * would then be a seek.
 */
async function begin(client: ChaosClient, group: string): Promise<void> {
  const { random } = client
  const raw = client.raw()
  const backMs = random.below(fromMsMax)
  const mode = random.below(3)
  const from: OperatorRecord['from'] =
    mode === 0 ? 'all' : mode === 1 ? 'new' : monotonicMs() - backMs
  const subscription: Record<string, string> =
    typeof from === 'string'
      ? { subscriptionMode: from }
      : { subscriptionFrom: new Date(Date.now() - backMs).toISOString() }
  const isByPop = random.next() < 0.5
  const call = { kind: 'subscribe', queue, group, from } as const
  const end = client.recorder.begin(call)
  let outcome: Outcome = 'unknown'
  if (!isByPop) ({ outcome } = await raw.subscribe(queue, group, subscription))
  while (isByPop && outcome !== 'ok' && !client.consuming.aborted) {
    outcome = await beginByPop(client, raw, group, subscription)
    if (outcome !== 'ok') await client.pause(retryMs, client.consuming)
  }
  end(call, { outcome })
}

async function beginByPop(
  client: ChaosClient,
  raw: RawClient,
  group: string,
  subscription: Readonly<Record<string, string>>,
): Promise<Outcome> {
  const pop = { queue, group, batch: 10, partitions: partitionCount, waitMs: 0, subscription }
  const { outcome, body = [] } = await raw.pop(pop)
  if (body.length > 0) await ackUntilAnswered(client, raw, body)
  return outcome
}

/** Consumes for every group of this client, including those of a killed predecessor. */
async function consumeAll(client: ChaosClient, number: number): Promise<void> {
  const consuming = new Map<string, Promise<void>>()
  while (!client.consuming.aborted) {
    for (const group of await groupsOf(client, number)) {
      if (!consuming.has(group)) consuming.set(group, consumeAs(client, client.raw(), group))
    }
    await client.pause(lookMs, client.consuming)
  }
  await Promise.all(consuming.values())
}

async function groupsOf(client: ChaosClient, number: number): Promise<string[]> {
  const listed = `select g.name from rouse.groups g join rouse.queues q on q.id = g.queue_id
    where q.name = $1 and starts_with(g.name, $2)`
  try {
    const found = await client.sql().query<{ name: string }>(listed, [queue, prefixOf(number)])
    return found.rows.map(({ name }) => name)
  } catch {
    // The database is unavailable; the next query will find the groups.
    return []
  }
}

function consumeAs(client: ChaosClient, raw: RawClient, group: string): Promise<void> {
  return consume(client, raw, { queue, group, partitions: partitionCount }, (messages) =>
    ackUntilAnswered(client, raw, messages),
  )
}

function prefixOf(number: number): string {
  return `new-${number}-`
}
