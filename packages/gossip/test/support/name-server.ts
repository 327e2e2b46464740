// A name server for tests: answers A, AAAA and SRV questions over UDP from a table.
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import type { Test } from 'tap'

export interface Zone {
  a?: Record<string, string[]>
  aaaa?: Record<string, string[]>
  srv?: Record<string, { name: string; port: number }[]>
  /** If true, the server answers SERVFAIL. */
  isBroken?: boolean
}

const types = { a: 1, aaaa: 28, srv: 33 } as const
/** The flags of a response, including its code. */
const codes = { found: 0x81_80, failed: 0x81_82, none: 0x81_83 } as const

/** Starts the server. Changes of the zone take effect with the next answer. */
export async function startNameServer(t: Test, zone: Zone): Promise<Resolver> {
  const socket = createSocket('udp4', (query, { address, port }) => {
    socket.send(answer(query, zone), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  const resolver = new Resolver({ timeout: 500, tries: 1 })
  resolver.setServers([`127.0.0.1:${socket.address().port}`])
  return resolver
}

function answer(query: Buffer, zone: Zone): Buffer {
  const labels: string[] = []
  let at = 12
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const question = query.subarray(12, at + 5)
  const isBroken = zone.isBroken === true
  const records = isBroken ? [] : recordsOf(zone, labels.join('.'), query.readUInt16BE(at + 1))
  const header = Buffer.alloc(12)
  query.copy(header, 0, 0, 2)
  const code = isBroken ? codes.failed : records.length > 0 ? codes.found : codes.none
  header.writeUInt16BE(code, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(records.length, 6)
  const type = query.readUInt16BE(at + 1)
  return Buffer.concat([header, question, ...records.map((data) => record(type, data))])
}

function recordsOf({ a, aaaa, srv }: Zone, name: string, type: number): Buffer[] {
  if (type === types.a) return (a?.[name] ?? []).map((ip) => Buffer.from(ip.split('.').map(Number)))
  if (type === types.aaaa) return (aaaa?.[name] ?? []).map(ipv6Bytes)
  if (type !== types.srv) return []
  return (srv?.[name] ?? []).map((target) => {
    const head = Buffer.alloc(6)
    head.writeUInt16BE(target.port, 4)
    const labels = target.name
      .split('.')
      .map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`))
    return Buffer.concat([head, ...labels, Buffer.from([0])])
  })
}

/** Supports only short addresses such as `::1`. */
function ipv6Bytes(address: string): Buffer {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt16BE(Number.parseInt(address.replace('::', ''), 16), 14)
  return bytes
}

function record(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc0_0c, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}
