import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'

const lowest = 10_000
/** Below the ephemeral range, so that no outgoing connection takes a port while its owner is down. */
const highest = 32_000

/** The process that listens on the first port of a block owns the block until it exits. */
const blockSize = 16

/**
 * Ports for TCP and UDP that stay free while their owner is restarted. Another cluster that starts meanwhile
 * would see these ports as free, so ports are taken in blocks, each owned by one process.
 */
export async function freePorts(count: number): Promise<number[]> {
  const blockCount = Math.floor((highest - lowest) / blockSize)
  const start = Math.floor(Math.random() * blockCount)
  for (let i = 0; i < blockCount; i += 1) {
    const guard = lowest + ((start + i) % blockCount) * blockSize
    const ports = await freeInBlock(guard)
    if (ports.length >= count && (await keepListening(guard))) return ports.slice(0, count)
  }
  throw new Error('no free block of ports found')
}

async function freeInBlock(guard: number): Promise<number[]> {
  const ports: number[] = []
  for (let port = guard + 1; port < guard + blockSize; port += 1) {
    if ((await isFreeTcp(port)) && (await isFreeUdp(port))) ports.push(port)
  }
  return ports
}

function keepListening(port: number): Promise<boolean> {
  const server = createServer((socket) => socket.destroy()).unref()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => resolve(true))
  })
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
