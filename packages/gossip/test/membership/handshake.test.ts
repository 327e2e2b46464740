// Which nodes become members, and which do not.
import { test } from 'tap'
import { GossipCore, presets } from '../../src/index.ts'
import { membersMax } from '../../src/membership/members.ts'
import { clusterNumber, headerBytes, sealFrame, senderKey, tagBytes } from '../../src/wire/frame.ts'
import { readMessages } from '../../src/wire/message-reader.ts'
import { type Heartbeat, type Message, packMessages } from '../../src/wire/messages.ts'
import { unsigned } from '../simulation/unsigned.ts'
import { addressOf, VirtualCluster } from '../support/virtual-cluster.ts'

const repliesPerSecondMax = 2_000

test('an answer that arrives more than two seconds after the hello proves nothing', async (t) => {
  for (const [afterMs, state] of [
    [1_900, 'alive'],
    [2_100, undefined],
  ] as const) {
    const cluster = new VirtualCluster()
    const { network } = cluster
    const greeter = cluster.start(0)
    cluster.start(1)
    network.act(greeter.node, (core, now) => core.discovered([addressOf(1)], now))
    network.cut(addressOf(1), addressOf(0))
    let answer = Buffer.alloc(0)
    network.onSend = (bytes, from) => {
      if (from === addressOf(1)) answer = Buffer.from(bytes)
    }
    // Hellos are sent at 0, 100, 300, … 6,300 and 12,700 ms. No cleanup removes tokens between two of them.
    network.runUntil(6_300 + afterMs)
    network.act(greeter.node, (core, now) => core.receive(answer, addressOf(1), now))
    t.equal(greeter.stateOf('node-1'), state, `after ${afterMs} ms`)
  }
})

test('a node that is leaving accepts no new members', async (t) => {
  const cluster = VirtualCluster.of(2)
  const { network } = cluster
  network.act(cluster.at(0).node, (core, now) => core.leave(now))
  const late = cluster.start(2)
  network.act(late.node, (core, now) => core.discovered([addressOf(0)], now))
  network.runFor(1_000)
  t.equal(late.stateOf('node-0'), undefined)
  t.equal(cluster.at(0).stateOf('node-2'), undefined)
})

/** Creates a single core. The test sends it the messages of unknown nodes. */
function startAlone() {
  const replies: Message[][] = []
  const core = new GossipCore(
    {
      clusterId: 'test',
      nodeId: 'node',
      incarnation: 1,
      advertise: () => addressOf(0),
      signer: unsigned,
      preset: presets.lan,
      random: () => 0.5,
    },
    {
      onHint: () => undefined,
      send: (bytes) => {
        const messages = readMessages(Buffer.from(bytes).subarray(headerBytes, -tagBytes))
        if (typeof messages !== 'string') replies.push(messages)
      },
    },
    0,
  )
  const say = (stranger: number, messages: Message[], now: number) => {
    const nodeId = `stranger-${stranger}`
    const sender = senderKey('test', nodeId)
    const origin = { cluster: clusterNumber('test'), sender, incarnation: 1 }
    const bytes = sealFrame(origin, Math.floor(now), packMessages(messages), unsigned)
    core.receive(bytes, `10.1.1.1:${stranger + 1}`, now)
  }
  const hello = (stranger: number, isReply: boolean) => {
    return {
      type: 'hello',
      isReply,
      nodeId: `stranger-${stranger}`,
      token: 1,
      known: 9_999,
    } as const
  }
  /** Sends a hello from an unknown node; returns whether the core replied. */
  const greet = (stranger: number, now: number): boolean => {
    replies.length = 0
    say(stranger, [hello(stranger, false)], now)
    return replies.length > 0
  }
  const answer = (stranger: number, now: number): void => {
    const echoed = replies[0]?.find((message): message is Heartbeat => message.type === 'heartbeat')
    if (echoed === undefined) return
    say(stranger, [hello(stranger, true), { ...echoed, token: 2, echo: echoed.token }], now)
  }
  return { core, greet, answer }
}

test('the number of members is limited', async (t) => {
  const { core, greet, answer } = startAlone()
  for (let stranger = 0; stranger < membersMax + 3; stranger += 1) {
    const now = 1_000 + stranger
    greet(stranger, now)
    answer(stranger, now + 0.5)
  }
  t.equal(core.memberCount, membersMax)
  t.equal(core.stats().drops.full, 3)
})

test('the number of answers to unknown nodes per second is limited', async (t) => {
  const { core, greet } = startAlone()
  let answered = 0
  for (let stranger = 0; stranger < repliesPerSecondMax + 5; stranger += 1) {
    if (greet(stranger, 1_000 + stranger / 10)) answered += 1
  }
  t.equal(answered, repliesPerSecondMax)
  t.equal(core.stats().drops.limit, 5)
  t.ok(greet(0, 2_001), 'the next second it answers again')
})
