// No datagram exceeds the size limit, however long the names and however large the counters are.
import { test } from 'tap'
import { hintLimits } from '../../src/hints/hint.ts'
import { PendingHints, toPending } from '../../src/hints/pending-hints.ts'
import { recipientBytes, recipientsMax } from '../../src/hints/recipients.ts'
import { reportsMax } from '../../src/hints/reports.ts'
import { presets } from '../../src/index.ts'
import { interestEntriesMax } from '../../src/interest/own-interest.ts'
import { entryBytes } from '../../src/interest/peer-interest.ts'
import { candidatesMax } from '../../src/membership/candidates.ts'
import { addressBytesMax } from '../../src/transport/address.ts'
import { bodyBytesMax, frameBytesMax } from '../../src/wire/frame.ts'
import { nodeIdBytesMax, peersBytesMax, peersMax } from '../../src/wire/message-reader.ts'
import { type Heartbeat, type Hello, type Message, packMessages } from '../../src/wire/messages.ts'
import { unsigned } from '../simulation/unsigned.ts'
import { VirtualNetwork } from '../simulation/virtual-network.ts'

const most = Number.MAX_SAFE_INTEGER
const heartbeat: Heartbeat = {
  type: 'heartbeat',
  token: most,
  echo: most,
  heldTenthMs: most,
  sinceHeardMs: most,
  intervalMs: most,
  countedFrom: most,
  settledBatch: most,
  batchesSent: most,
  interestVersion: most,
  interestHeld: most,
  view: most,
}

function hello(isReply: boolean, idBytes: number): Hello {
  return { type: 'hello', isReply, nodeId: 'x'.repeat(idBytes), token: most, known: candidatesMax }
}

test('the longest answer is no longer than the shortest hello', async (t) => {
  const answer = packMessages([hello(true, nodeIdBytesMax), heartbeat]).length
  for (let idBytes = 1; idBytes <= nodeIdBytesMax; idBytes += 1) {
    const greeting = packMessages([{ ...hello(false, idBytes), token: 2 ** 50, known: 1 }]).length
    if (greeting < answer) t.fail(`${greeting} bytes with an id of ${idBytes}`)
  }
  t.ok(packMessages([hello(false, nodeIdBytesMax)]).length < answer + 20, 'and not much shorter')
})

test('the longest welcome fits', async (t) => {
  const longest = Math.floor(peersBytesMax / peersMax) - 2
  const addresses = Array.from({ length: peersMax }, () => 'x'.repeat(longest))
  const messages: Message[] = [hello(true, nodeIdBytesMax), heartbeat, { type: 'peers', addresses }]
  t.ok(packMessages(messages).length <= bodyBytesMax)
})

test('the longest interest and notices fit', async (t) => {
  const entries = new Uint8Array(interestEntriesMax * entryBytes)
  const interest = packMessages([{ type: 'interest', version: most, entries }]).length
  t.ok(interest <= bodyBytesMax && interest + 2 * entryBytes > bodyBytesMax, `${interest} bytes`)
  const sender = '12345678'
  const rest: Message[] = [
    { type: 'stale', incarnation: most, echo: most },
    { type: 'vouch request', sender, incarnation: most, token: most },
    { type: 'vouch', sender, incarnation: most, sinceHeardMs: most, echo: most },
    { type: 'leave' },
  ]
  t.ok(packMessages(rest).length <= bodyBytesMax)
})

test('the longest hints fit, together with their recipients', async (t) => {
  const pending = new PendingHints()
  const name = 'x'.repeat(hintLimits.nameBytesMax)
  const hint = { kind: 'SCHEDULED', count: most, value: most } as const
  pending.add(toPending({ ...hint, scope: name, part: name, labels: [name, name, '', ''] }))
  for (let index = 0; index < 30; index += 1) pending.add(toPending({ ...hint, scope: `${index}` }))
  const to = new Uint8Array(recipientsMax * recipientBytes)
  const batches = pending.take()
  t.equal(batches.length, 2)
  for (const hints of batches) {
    const batch = { number: most, hints: hints.map((one, ask) => ({ ...one.hint, ask })) }
    t.ok(packMessages([{ type: 'hints', batches: [batch], to }]).length <= bodyBytesMax)
  }
})

test('the most reports fit, and leave room for a heartbeat', async (t) => {
  const to = new Uint8Array(recipientBytes)
  const settled = Array.from({ length: 2 * reportsMax }, (_, i) => (i % 2 === 0 ? most : 40))
  t.ok(packMessages([{ type: 'settled', to, settled }]).length <= bodyBytesMax)
  const addresses = Array.from({ length: 3 }, () => 'x'.repeat(addressBytesMax))
  const some: Message = { type: 'settled', to, settled: settled.slice(0, 64) }
  const beat = packMessages([heartbeat, { type: 'peers', addresses }, some]).length
  t.ok(beat <= bodyBytesMax, `${beat} bytes`)
})

test('nodes with the longest names and addresses meet, and send each other the longest hints', async (t) => {
  const network = new VirtualNetwork({ seed: 1, signer: unsigned })
  let longest = 0
  network.onSend = (bytes) => {
    longest = Math.max(longest, bytes.length)
  }
  const addressOf = (index: number) =>
    `[fe80::aaaa:bbbb:cccc:${4_096 + index}%an-interface-name]:46001`
  const start = (index: number) => {
    const nodeId = `node-${index}-`.padEnd(nodeIdBytesMax, 'x')
    const name = { nodeId, address: addressOf(index), incarnation: 2 ** 52 + index }
    return network.start(name, { onHint: () => undefined })
  }
  const nodes = Array.from({ length: 40 }, (_, index) => start(index))
  for (const node of nodes) {
    network.act(node, (core, now) =>
      core.discovered(
        nodes.map(({ address }) => address),
        now,
      ),
    )
  }
  network.runFor(1_000)
  const late = start(nodes.length)
  network.act(late, (core, now) => core.discovered([addressOf(0)], now))
  network.runFor(3_000)
  t.equal(late.core.memberCount, nodes.length)
  for (let index = 0; index < 30; index += 1) {
    const name = `${index}`.padEnd(hintLimits.nameBytesMax, 'x')
    const hint = { kind: 'SCHEDULED', scope: name, part: name, count: most, value: most } as const
    const labels = [name, name, null, '']
    network.act(late, (core, now) =>
      core.hint({ ...hint, labels: labels.slice(0, index % 5) }, now),
    )
    network.runFor(index % 3)
  }
  network.runFor(presets.lan.rideAfterMs * 2)
  t.ok(longest > 1_000 && longest <= frameBytesMax, `${longest} bytes`)
})
