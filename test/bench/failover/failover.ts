// `npm run bench -- failover [--failovers N] [--producers N]`: how long pushes get no response when the
// PostgreSQL primary is lost, and how many messages are lost. A node with two workers knows both servers.
// This program is the failover manager and promotes the standby at once. So the result includes the promotion
// and the reaction of the node, but not the time to detect the failure.
//
//   killed    all processes of the primary are killed
//   frozen    all processes of the primary are stopped: their connections stay open and silent
//   behind    the asynchronous standby is disconnected for a second, then the primary is killed
import { parseArgs } from 'node:util'
import { startPostgresPair } from '@rouse/testkit'
import { percentile, Verdict } from '../support/figures.ts'
import { type BenchNode, startNode } from '../support/node.ts'
import { startFailoverLoad } from './load.ts'

const { values: flags } = parseArgs({
  options: {
    failovers: { type: 'string', default: '5' },
    producers: { type: 'string', default: '8' },
  },
})
const failovers = Number(flags.failovers)
const producers = Number(flags.producers)
const steadyMs = 2_000
const behindMs = 1_000
const unansweredMsMax = 10_000

type Loss = 'killed' | 'frozen' | 'behind'
type Pair = Awaited<ReturnType<typeof startPostgresPair>>

interface Figures {
  readonly unansweredMs: number
  readonly promotionMs: number
  readonly answered: number
  readonly unknown: number
  readonly lost: number
}

const verdict = new Verdict()
await measure('synchronous', ['killed', 'frozen'])
await measure('asynchronous', ['killed', 'behind'])
process.exitCode = verdict.report(console.log)

async function measure(kind: 'synchronous' | 'asynchronous', losses: readonly Loss[]) {
  // Commits are durable, as in production; test servers switch this off.
  const settings = { fsync: 'on', full_page_writes: 'on' }
  const pair = await startPostgresPair({ synchronous: kind === 'synchronous', settings })
  const node = await startNode(pair.url)
  try {
    for (const loss of losses) {
      const all: Figures[] = []
      while (all.length < failovers) all.push(await failOver(pair, node, loss))
      tell(kind, loss, all)
    }
  } finally {
    await node.stop()
    await pair.stop()
  }
}

async function failOver(pair: Pair, node: BenchNode, loss: Loss): Promise<Figures> {
  const queue = `failover-${loss}-${Math.random().toString(36).slice(2)}`
  const load = startFailoverLoad(node.url, queue, producers)
  await pass(steadyMs)
  if (loss === 'behind') {
    await pair.standby.kill()
    await pass(behindMs)
  }
  const lostAtMs = performance.now()
  if (loss === 'frozen') pair.primary.freeze()
  else await pair.primary.kill()
  await pair.standby.start()
  await pair.promoteStandby()
  const promotedAtMs = performance.now()
  while ((load.answered.at(-1)?.atMs ?? 0) < promotedAtMs) await pass(5)
  await pass(steadyMs)
  await load.stop()
  const stored = await storedPayloads(pair)
  const lost = load.answered.filter(({ payload }) => !stored.has(payload)).length
  await pair.rebuildStandby()
  return {
    unansweredMs: longestGapAfter(lostAtMs, load.answered),
    promotionMs: promotedAtMs - lostAtMs,
    answered: load.answered.length,
    unknown: load.unknown,
    lost,
  }
}

/** Reads the payloads of all stored messages. No consumer runs, so none has been removed. */
async function storedPayloads(pair: Pair): Promise<Set<number>> {
  const rows = await pair.primary.query<{ payload: string }>('select payload from rouse.messages')
  return new Set(rows.map(({ payload }) => Number(payload)))
}

/** Returns the longest time between two successive responses of which the second came after the loss. */
function longestGapAfter(atMs: number, answered: readonly { readonly atMs: number }[]): number {
  let longest = 0
  for (const [i, { atMs: now }] of answered.entries()) {
    if (now < atMs) continue
    longest = Math.max(longest, now - (answered[i - 1]?.atMs ?? atMs))
  }
  return longest
}

function tell(kind: string, loss: Loss, all: readonly Figures[]): void {
  const sum = (of: (one: Figures) => number) => all.reduce((total, one) => total + of(one), 0)
  const seconds = (of: (one: Figures) => number) => {
    const sorted = all.map(of).toSorted((a, b) => a - b)
    const [median, max] = [0.5, 1].map((p) => (percentile(sorted, p) / 1_000).toFixed(2))
    return `median ${median} s, max ${max} s`
  }
  console.log(
    `${kind} standby, primary ${loss}, ${all.length} failovers: no push answered for ${seconds(({ unansweredMs }) => unansweredMs)} ` +
      `(promotion alone ${seconds(({ promotionMs }) => promotionMs)})\n` +
      `  ${sum(({ lost }) => lost)} lost of ${sum(({ answered }) => answered)} answered pushes ` +
      `(each failover: ${all.map(({ lost }) => lost).join(', ')}), ${sum(({ unknown }) => unknown)} with an unknown outcome`,
  )
  const worst = Math.max(...all.map(({ unansweredMs }) => unansweredMs))
  verdict.check([
    { what: `${kind}, ${loss}: ms without an answered push`, value: worst, max: unansweredMsMax },
  ])
  if (kind === 'synchronous') {
    verdict.check([{ what: `${kind}, ${loss}: lost`, value: sum(({ lost }) => lost), max: 0 }])
  }
}

function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
