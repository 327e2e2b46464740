// Faults of clients and of their connections to the nodes.
import type { TcpMode } from '../network/tcp-relay.ts'
import { nemesis, pause, pick } from './nemesis.ts'

const cutsSeconds = 0.5
const cutShare = 0.5

/** Half of the connections are reset, twice a second. */
export const clientAbort = nemesis('client-abort', async ({ wires }, { random, seconds }) => {
  let cut = 0
  for (let left = seconds; left > 0; left -= cutsSeconds) {
    for (const relay of wires.clients) cut += relay.cut({ share: cutShare, random })
    await pause(Math.min(left, cutsSeconds))
  }
  return { target: `${cut} connections` }
})

/** Responses are dropped, and the client sees a reset. */
export const answersLost = nemesis('answers-lost', async ({ wires }, { random, seconds }) => {
  const lose: TcpMode = { kind: 'lose answers', probability: 0.2, random }
  try {
    for (const relay of wires.clients) relay.set(lose)
    await pause(seconds)
  } finally {
    for (const relay of wires.clients) relay.set({ kind: 'forward' })
  }
  return { target: 'a fifth of the responses' }
})

/** Connections stay open but carry nothing, so the client notices no error. */
export const clientHalfOpen = nemesis('client-half-open', async ({ wires }, about) => {
  const relay = pick(wires.clients, about.random)
  try {
    relay.set({ kind: 'drop' })
    await pause(about.seconds)
  } finally {
    relay.cut()
    relay.set({ kind: 'forward' })
  }
  return { target: `port ${relay.port}` }
})

export const clientKill = nemesis(
  'client-kill',
  async ({ clients }, { random }) => {
    if (clients === undefined) throw new Error('no clients are registered')
    return { target: await clients.killOne(random) }
  },
  {
    async lacks({ clients }) {
      return clients === undefined ? 'client processes' : undefined
    },
  },
)
