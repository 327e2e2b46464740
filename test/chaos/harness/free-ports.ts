import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'

const lowest = 10_000
/** Below the ports that the system hands out: nobody's connection takes one while its owner is down. */
const highest = 32_000

/** Ports, TCP and UDP, that stay free while whoever uses them is being restarted. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  const start = lowest + Math.floor(Math.random() * (highest - lowest))
  for (let i = 0; ports.length < count; i += 1) {
    if (i > highest - lowest) throw new Error('there are no free ports')
    const port = lowest + ((start - lowest + i) % (highest - lowest))
    if ((await isFreeTcp(port)) && (await isFreeUdp(port))) ports.push(port)
  }
  return ports
}

function isFreeTcp(port: number): Promise<boolean> {
  const probe = createServer()
  return new Promise((resolve) => {
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}

function isFreeUdp(port: number): Promise<boolean> {
  const probe = createSocket('udp4')
  return new Promise((resolve) => {
    probe.once('error', () => resolve(false))
    probe.bind(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
