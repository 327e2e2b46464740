// The address of a node: `10.0.0.5:4601` or `[fd00::5]:4601`. In the core an address is this text, which also
// serves as the key in maps.
import { isIP, isIPv4, isIPv6, SocketAddress } from 'node:net'

export type Address = string

export interface HostAndPort {
  readonly host: string
  readonly port: number
}

export const addressBytesMax = 64

export function formatAddress({ host, port }: HostAndPort): Address {
  const plain = withoutMapping(host)
  return isIPv6(plain) ? `[${plain}]:${port}` : `${plain}:${port}`
}

/** Undefined for anything but a host and a port. */
export function parseAddress(text: string): HostAndPort | undefined {
  const match = /^(?:\[([^\]]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port }
}

/** The canonical form of an address: `[FD00:0::5]:1` becomes `[fd00::5]:1`, and `[::ffff:10.0.0.5]:1`
 * becomes `10.0.0.5:1`. Addresses from a socket are canonical already. */
export function normalAddress(text: string): Address | undefined {
  const parsed = parseAddress(text)
  return parsed && formatAddress({ host: normalHost(parsed.host), port: parsed.port })
}

export function isNumeric(host: string): boolean {
  return isIP(host) !== 0
}

export function isLoopback(host: string): boolean {
  const plain = withoutMapping(host)
  return plain === '::1' || plain === 'localhost' || (isIPv4(plain) && plain.startsWith('127.'))
}

function normalHost(host: string): string {
  if (!isIPv6(host)) return host
  const [address = host, zone] = host.split('%')
  const normal = new SocketAddress({ address, family: 'ipv6' }).address
  return zone === undefined ? normal : `${normal}%${zone}`
}

/** A dual-stack socket reports an IPv4 peer as `::ffff:10.0.0.5`. */
function withoutMapping(host: string): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(host)?.[1]
  return mapped !== undefined && isIPv4(mapped) ? mapped : host
}
