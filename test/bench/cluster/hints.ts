// The latency of a hint between two processes, without nodes and without a database.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { GossipNode, type Hint } from '@rouse/gossip'
import { type ClusterFigures, figuresOf } from './nodes.ts'

const secrets = ['a secret of this benchmark alone']
const clusterId = 'bench'
const ports = [4_811, 4_812] as const

/** A clock that all processes of a machine share. */
const nowMs = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000

/** The number of trials until the code is compiled, as in a running node. They have a shorter pause. */
const warmUpTrials = 5_000
const warmUpPauseMs = 1
const pauseMs = 10

export async function hintLatencies(trials: number): Promise<ClusterFigures> {
  const took: number[] = []
  let heard: (() => void) | undefined
  const node = gossipOf(0, ({ labels }) => {
    took.push(nowMs() - Number(labels?.[0]))
    heard?.()
  })
  await node.start()
  const child = fork(fileURLToPath(import.meta.url), [])
  await once(child, 'message')
  for (let i = 0; i < warmUpTrials + trials; i += 1) {
    const arrived = new Promise<void>((resolve) => {
      heard = resolve
    })
    child.send('hint')
    await arrived
    const gapMs = i < warmUpTrials ? warmUpPauseMs : pauseMs
    await new Promise((resolve) => setTimeout(resolve, gapMs))
  }
  child.kill()
  await node.stop()
  return { ...figuresOf(took.slice(warmUpTrials)), sources: '' }
}

function gossipOf(index: 0 | 1, onHint: (hint: Hint) => void): GossipNode {
  return new GossipNode({
    clusterId,
    nodeId: `gossip-${index}`,
    incarnation: 1,
    bind: { host: '127.0.0.1', port: ports[index] },
    secrets,
    peers: ports.map((port) => `127.0.0.1:${port}`),
    onHint,
    onPeer: (_peer, event) => {
      if (event === 'joined') process.send?.('joined')
    },
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const node = gossipOf(1, () => {})
  process.on('message', () => {
    node.hint({ kind: 'MESSAGE_AVAILABLE', scope: 'q', count: 1, labels: [String(nowMs())] })
  })
  await node.start()
}
