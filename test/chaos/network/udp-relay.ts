// The network between the nodes' gossip. Each node advertises a port of the relay. A datagram from node i to
// the port of j is recognized by its source port and forwarded to j from the port of i, so that each node
// sees the other at a single address.
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'

export interface UdpFault {
  readonly loss?: number
  readonly duplication?: number
  /** Delays each datagram by up to this much, so that others overtake it. */
  readonly delayMsMax?: number
  /** The share of datagrams that arrive with a flipped bit. */
  readonly corruption?: number
}

export interface UdpRelay {
  /** The ports for the nodes to advertise. */
  readonly ports: readonly number[]
  /** Applies the fault to datagrams from one node to another, until healed. */
  harm(
    from: number,
    to: number,
    fault: UdpFault & {
      readonly random: () => number
    },
  ): void
  heal(): void
  stop(): Promise<void>
}

type Harm = UdpFault & { readonly random: () => number }

const host = '127.0.0.1'

/** `nodePorts` are the ports on which the nodes' gossip listens. */
export async function startUdpRelay(nodePorts: readonly number[]): Promise<UdpRelay> {
  const harms = new Map<string, Harm>()
  const timers = new Set<NodeJS.Timeout>()
  const sockets = await Promise.all(nodePorts.map(openSocket))
  for (const [to, socket] of sockets.entries()) {
    socket.on('message', (bytes, { port }) => {
      const from = nodePorts.indexOf(port)
      if (from >= 0 && from !== to) pass(bytes, from, to)
    })
  }

  function pass(bytes: Buffer, from: number, to: number): void {
    const harm = harms.get(`${from} ${to}`)
    if (harm === undefined) return send(bytes, from, to)
    const { loss = 0, duplication = 0, corruption = 0, delayMsMax = 0, random } = harm
    if (random() < loss) return
    const copies = random() < duplication ? 2 : 1
    for (let i = 0; i < copies; i += 1) {
      const datagram = random() < corruption ? withTurnedBit(bytes, random) : bytes
      if (delayMsMax === 0) send(datagram, from, to)
      else later(() => send(datagram, from, to), random() * delayMsMax)
    }
  }

  function send(bytes: Buffer, from: number, to: number): void {
    sockets[from]?.send(bytes, nodePorts[to], host)
  }

  function later(act: () => void, ms: number): void {
    const timer = setTimeout(() => {
      timers.delete(timer)
      act()
    }, ms)
    timers.add(timer)
  }

  return {
    ports: sockets.map((socket) => socket.address().port),
    harm: (from, to, harm) => void harms.set(`${from} ${to}`, harm),
    heal: () => harms.clear(),
    async stop() {
      for (const timer of timers) clearTimeout(timer)
      await Promise.all(
        sockets.map((socket) => new Promise<void>((resolve) => socket.close(resolve))),
      )
    },
  }
}

async function openSocket(): Promise<Socket> {
  const socket = createSocket('udp4')
  // While a node is down, sending to it fails.
  socket.on('error', () => {})
  socket.bind(0, host)
  await once(socket, 'listening')
  return socket
}

function withTurnedBit(bytes: Buffer, random: () => number): Buffer {
  const copy = Buffer.from(bytes)
  const at = Math.floor(random() * copy.length)
  copy[at] = (copy[at] ?? 0) ^ (1 << Math.floor(random() * 8))
  return copy
}
