// How far a wake chain goes: until what was announced is found, and where nobody counted, until a pop finds nothing.
import { test } from 'tap'
import { hint, nodeFixture, orders } from './support/node-fixture.ts'

function threeWorkersWait() {
  const node = nodeFixture()
  for (const id of [1, 2, 3]) node.manager.setWaiting(id, orders, 5)
  return node
}

test('one message that was announced and found is the end of the chain', async (t) => {
  const node = threeWorkersWait()
  node.manager.handleMessageAvailable({ ...hint, count: 1 })
  node.pops('messages', 1)
  t.equal(node.grants.length, 1)
})

test('what one worker did not find is for the next', async (t) => {
  const node = threeWorkersWait()
  node.manager.notifyMessageAvailable({ ...hint, count: 7 }, { sidecarId: 1 })
  node.pops('messages', 5)
  t.equal(node.grants.length, 2)
  node.pops('messages', 2)
  t.equal(node.grants.length, 2)
})

test('announcements add up, also those that come during a pop', async (t) => {
  const node = threeWorkersWait()
  node.manager.handleMessageAvailable({ ...hint, count: 1 })
  node.take()
  node.manager.handleMessageAvailable({ ...hint, count: 1 })
  node.pops('messages', 1)
  t.equal(node.grants.length, 2)
  node.pops('messages', 1)
  t.equal(node.grants.length, 2)
})

test('an empty pop ends it: somebody else was faster', async (t) => {
  const node = threeWorkersWait()
  node.manager.handleMessageAvailable({ ...hint, count: 2 })
  node.pops('empty', 0)
  node.manager.handleMessageAvailable({ ...hint, count: 1 })
  node.pops('messages', 1)
  t.equal(node.grants.length, 2)
})

for (const [what, tell] of [
  ['a free lane', (node) => node.manager.notifyPartitionFree({ ...hint, count: 1 }, 'timer')],
  ['news without a count', (node) => node.manager.handleMessageAvailable({ ...hint, count: 0 })],
  [
    'a lane that opened for one group',
    (node) => node.manager.notifyMessageAvailable({ ...hint, group: 'g', count: 1 }, 'timer'),
  ],
  [
    'one that opened through a peer',
    (node) => node.manager.handleMessageAvailable({ ...hint, group: 'g', count: 1 }),
  ],
  ['news of anything', (node) => node.manager.notifyEverything('ipc')],
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
