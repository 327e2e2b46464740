// When a wake chain ends: when the hinted number of messages is found or, if the hint has no count, when a
// pop finds nothing.
import { test } from 'tap'
import { hint, nodeFixture, orders } from '../support/node-fixture.ts'

function threeWorkersWait() {
  const node = nodeFixture()
  node.waits(1, orders, 5)
  node.pops('empty')
  node.grants.length = 0
  for (const id of [2, 3]) node.manager.setWaiting(id, orders, 5)
  return node
}

test('the chain ends when the one hinted message is found', async (t) => {
  const node = threeWorkersWait()
  node.manager.handleMessageAvailable({ ...hint, count: 1 })
  node.pops('messages', 1)
  t.equal(node.grants.length, 1)
})

test('messages that one worker did not find go to the next', async (t) => {
  const node = threeWorkersWait()
  node.manager.notifyMessageAvailable({ ...hint, count: 7 }, { sidecarId: 1 })
  node.pops('messages', 5)
  t.equal(node.grants.length, 2)
  node.pops('messages', 2)
  t.equal(node.grants.length, 2)
})

test('hinted counts add up, including hints that arrive during a pop', async (t) => {
  const node = threeWorkersWait()
  node.manager.handleMessageAvailable({ ...hint, count: 1 })
  node.take()
  node.manager.handleMessageAvailable({ ...hint, count: 1 })
  node.pops('messages', 1)
  t.equal(node.grants.length, 2)
  node.pops('messages', 1)
  t.equal(node.grants.length, 2)
})

test('an empty pop ends the chain: another node was faster', async (t) => {
  const node = threeWorkersWait()
  node.manager.handleMessageAvailable({ ...hint, count: 2 })
  node.pops('empty', 0)
  node.manager.handleMessageAvailable({ ...hint, count: 1 })
  node.pops('messages', 1)
  t.equal(node.grants.length, 2)
})

for (const [what, tell] of [
  ['a free lane', (node) => node.manager.notifyPartitionFree({ ...hint, count: 1 }, 'timer')],
  ['a hint without a count', (node) => node.manager.handleMessageAvailable({ ...hint, count: 0 })],
  [
    'a lane that opens for one consumer group',
    (node) => node.manager.notifyMessageAvailable({ ...hint, group: 'g', count: 1 }, 'timer'),
  ],
  [
    'a lane that opens through a peer',
    (node) => node.manager.handleMessageAvailable({ ...hint, group: 'g', count: 1 }),
  ],
  ['a wake-up of every group', (node) => node.manager.notifyEverything('ipc')],
] as const satisfies readonly [string, (node: ReturnType<typeof nodeFixture>) => void][]) {
  test(`${what} is followed until a pop finds nothing`, async (t) => {
    const node = threeWorkersWait()
    tell(node)
    for (let i = 0; i < 4; i += 1) node.pops('messages', 1)
    t.equal(node.grants.length, 5)
    node.pops('empty', 0)
    t.equal(node.grants.length, 5)
  })
}
