// When a node starts and stops, and what of it is left.
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { MemoryNetwork, type PeerEvent } from '../src/index.ts'
import { alive, startNode } from './support/transport-suite.ts'

/** Two nodes that know each other, and what becomes of the first one in the eyes of the second. */
async function startTwo(t: Test, options: Parameters<typeof startNode>[3] = {}) {
  const network = new MemoryNetwork()
  const one = await startNode(t, 1, network.transport('10.0.0.1:1'), options)
  const seen: { onEvent: (event: PeerEvent) => void } = { onEvent: () => {} }
  const other = await startNode(t, 2, network.transport('10.0.0.2:1'), {
    onPeer: (_, event) => seen.onEvent(event),
  })
  one.gossip.discovered([other.address])
  await eventually(() => alive(one.gossip).length === 1 && alive(other.gossip).length === 1)
  return { one: one.gossip, network, seen }
}

test('a name service that never answers keeps nobody from saying goodbye, nor for long from the end', async (t) => {
  let asked = 0
  const never = () => {
    asked += 1
    return new Promise<never>(() => {})
  }
  const names = { resolve4: never, resolve6: never, resolveSrv: never }
  const { one, seen } = await startTwo(t, { names, peers: ['silent.test:1'] })
  await eventually(() => asked === 2)
  const order: string[] = []
  seen.onEvent = (event) => order.push(event)
  // What waits for the name service comes after this.
  setTimeout(() => order.push('timer'), 200)
  await one.stop()
  t.same(order, ['left', 'timer'])
})

test('stop takes back what was asked', async (t) => {
  let isTakenBack = false
  let takeBack: ((reason: Error) => void) | undefined
  const names = {
    resolve4: () => {
      return new Promise<never>((_, reject) => {
        takeBack = reject
      })
    },
    resolve6: async () => ['::5'],
    resolveSrv: async () => [],
    cancel: () => {
      isTakenBack = true
      takeBack?.(new Error('cancelled'))
    },
  }
  const { one } = await startTwo(t, { names, peers: ['silent.test:1'] })
  await eventually(() => takeBack !== undefined)
  await one.stop()
  t.ok(isTakenBack)
})
