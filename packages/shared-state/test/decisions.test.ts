// The four methods with which the manager decides: resetBackoffForQueue, tryAcquireGroup, shouldCheckGroup
// and getGroupInterval. A bug replaces one method by a constant. Each wake test passes without bugs and fails
// with every bug that names it in `caughtBy`. This shows that the node really uses the method.
import assert from 'node:assert/strict'
import { test } from 'tap'
import type { SharedStateManager } from '../src/index.ts'
import { hint, nodeFixture, ordersKey } from './support/node-fixture.ts'

type Node = ReturnType<typeof nodeFixture>
type Decision = 'resetBackoffForQueue' | 'tryAcquireGroup' | 'shouldCheckGroup' | 'getGroupInterval'

interface Bug {
  readonly method: Decision
  readonly returns: string
  readonly patch: (manager: SharedStateManager) => Partial<Pick<SharedStateManager, Decision>>
  /** The wake test that fails with this bug. */
  readonly caughtBy: keyof typeof wakeTests
}

const wakeTests = {
  'a push wakes one worker, and a push during its pop causes one more pop': (node) => {
    node.waits(1)
    assert.equal(node.grants.length, 1, 'the first query')
    node.pops('empty')
    node.manager.notifyMessageAvailable(hint, { sidecarId: 2 })
    assert.equal(node.grants.length, 2)
    node.take()
    node.manager.notifyMessageAvailable(hint, { sidecarId: 2 })
    assert.equal(node.grants.length, 2, 'one pop at a time')
    node.pops('empty')
    assert.equal(node.grants.length, 3)
  },
  'a hint makes an aggressive node poll after 100 ms again, even if its pop finds nothing': (
    node,
  ) => {
    node.waits(1)
    node.pops('empty')
    node.manager.reportFault('listener_lost')
    pollUntil(node, 10_000, () => [])
    const before = node.grants.length
    node.manager.handleMessageAvailable(hint)
    assert.equal(node.grants.length, before + 1)
    node.pops('empty')
    assert.equal(node.manager.nextWakeAt(), node.clock.now + 100)
  },
  'a message whose hint was lost is found after the idle interval': (node) => {
    node.waits(1)
    node.pops('empty')
    pollUntil(node, 6_100, () => [ordersKey])
    assert.deepEqual(
      node.grants.slice(1).map(({ source }) => source),
      ['fallback'],
    )
  },
  'an idle node polls twelve times a minute': (node) => {
    node.waits(1)
    node.pops('empty')
    assert.equal(
      pollUntil(node, 61_000, () => []),
      12,
    )
  },
  'a group that was popped a moment ago is left out of the poll': (node) => {
    for (const [queue, at] of Object.entries({ early: 1_000, late: 5_000 })) {
      node.clock.now = at
      node.waits(1, { source: { queue }, group: 'g' })
      node.pops('empty')
    }
    node.clock.now = 6_000
    assert.deepEqual(node.due(), ['early/*/g'])
  },
} satisfies Record<string, (node: Node) => void>

const bugs: readonly Bug[] = [
  {
    method: 'resetBackoffForQueue',
    returns: 'no groups',
    patch: () => ({ resetBackoffForQueue: () => [] }),
    caughtBy: 'a push wakes one worker, and a push during its pop causes one more pop',
  },
  {
    method: 'resetBackoffForQueue',
    returns: 'the groups with the backoff they had',
    patch: (manager) => {
      const reset = manager.resetBackoffForQueue.bind(manager)
      return {
        resetBackoffForQueue(one) {
          const { groups } = manager.getStats().group_backoff
          const matching = reset(one)
          for (const group of matching) {
            group.backoff = groups.find(({ key }) => key === group.key) ?? group.backoff
          }
          return matching
        },
      }
    },
    caughtBy:
      'a hint makes an aggressive node poll after 100 ms again, even if its pop finds nothing',
  },
  {
    method: 'tryAcquireGroup',
    returns: 'undefined: every group is in flight',
    patch: () => ({ tryAcquireGroup: () => undefined }),
    caughtBy: 'a push wakes one worker, and a push during its pop causes one more pop',
  },
  {
    method: 'tryAcquireGroup',
    returns: '1: no group is ever in flight',
    patch: () => ({ tryAcquireGroup: () => 1 }),
    caughtBy: 'a push wakes one worker, and a push during its pop causes one more pop',
  },
  {
    method: 'shouldCheckGroup',
    returns: 'false',
    patch: () => ({ shouldCheckGroup: () => false }),
    caughtBy: 'a message whose hint was lost is found after the idle interval',
  },
  {
    method: 'shouldCheckGroup',
    returns: 'true',
    patch: () => ({ shouldCheckGroup: () => true }),
    caughtBy: 'a group that was popped a moment ago is left out of the poll',
  },
  {
    method: 'getGroupInterval',
    returns: '100 ms',
    patch: () => ({ getGroupInterval: () => 100 }),
    caughtBy: 'an idle node polls twelve times a minute',
  },
  {
    method: 'getGroupInterval',
    returns: '10 minutes',
    patch: () => ({ getGroupInterval: () => 600_000 }),
    caughtBy: 'a message whose hint was lost is found after the idle interval',
  },
]

for (const [title, run] of Object.entries(wakeTests)) {
  test(title, async () => run(nodeFixture()))
}

for (const { method, returns, patch, caughtBy } of bugs) {
  test(`${method} that returns ${returns} is caught by: ${caughtBy}`, async (t) => {
    const node = nodeFixture()
    Object.assign(node.manager, patch(node.manager))
    t.throws(() => wakeTests[caughtBy](node), assert.AssertionError)
  })
}

test('every decision has a bug', async (t) => {
  t.equal(new Set(bugs.map(({ method }) => method)).size, 4)
})

/** Runs fallback polls when they are due, until `end`; returns their number. */
function pollUntil(node: Node, end: number, keysWithWork: () => string[]): number {
  let polls = 0
  // The number of steps is limited, because a bug may make every poll due at once.
  for (let step = 0; step < 10_000 && node.manager.nextWakeAt() <= end; step += 1) {
    node.clock.now = Math.max(node.clock.now, node.manager.nextWakeAt())
    node.manager.tick()
    if (node.due().length === 0) continue
    polls += 1
    node.manager.fallbackResult(keysWithWork())
  }
  node.clock.now = end
  return polls
}
