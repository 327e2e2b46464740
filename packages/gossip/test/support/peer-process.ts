// A node in a separate process, for tests that freeze or kill it. Prints its address on the first line.
import { GossipNode, type PresetName } from '../../src/index.ts'

const [index, peer, preset = 'loopback'] = process.argv.slice(2)
const gossip = new GossipNode({
  clusterId: 'test',
  nodeId: `node-${index}`,
  incarnation: Number(index) + 1,
  secrets: ['a secret of the test'],
  bind: { host: '127.0.0.1', port: 0 },
  preset: preset as PresetName,
  peers: peer === undefined ? [] : [peer],
  onHint: () => {},
})
process.stdout.write(`${await gossip.start()}\n`)
