import { networkInterfaces } from 'node:os'
import { GossipConfigError } from './gossip-config-error.ts'
import type { Hint } from './hints/hint.ts'
import type { NameService } from './membership/name-lookup.ts'
import type { GossipPorts, Settle } from './ports.ts'
import type { GossipPreset, PresetName } from './preset.ts'
import {
  type Address,
  formatAddress,
  type HostAndPort,
  isLoopback,
  normalAddress,
  parseAddress,
} from './transport/address.ts'
import type { Transport } from './transport/transport.ts'
import { KeyRing, secretsMax } from './wire/key-ring.ts'
import { nodeIdBytesMax } from './wire/message-reader.ts'

export interface GossipNodeOptions extends Omit<GossipPorts, 'send' | 'onHint'> {
  onHint(hint: Hint, fromNodeId: string, settle?: Settle): void
  readonly clusterId: string
  /** Unique in the cluster, and the same after a restart. */
  readonly nodeId: string
  /** Greater at every start, for example from a sequence in the database. */
  readonly incarnation: number | bigint
  /** The first secret signs, all of them verify; see key-ring.ts. May be empty only on loopback. */
  readonly secrets: readonly string[]
  readonly bind: HostAndPort
  /** `host[:port]` where peers reach us, if it differs from `bind`. */
  readonly advertise?: string | undefined
  /** `host:port`, numeric or a name, or `srv:name`. Peers from the database come through `discovered`. */
  readonly peers?: readonly string[] | undefined
  readonly preset?: PresetName | GossipPreset | undefined
  /** Replaces UDP. */
  readonly transport?: Transport | undefined
  readonly names?: NameService | undefined
}

/** Each check throws a GossipConfigError that says what to change. The settings parser calls the checks one
 * by one, before the cluster is known. */
export function checkOptions(options: GossipNodeOptions): void {
  if (options.clusterId === '') {
    throw new GossipConfigError('gossip_name_invalid', 'A cluster needs a name.')
  }
  checkNodeId(options.nodeId)
  checkSecrets(options.secrets, options.bind.host)
  checkPeers(options.peers ?? [])
  if (options.advertise !== undefined) checkAdvertise(options.advertise)
}

export function checkNodeId(nodeId: string): void {
  const bytes = Buffer.byteLength(nodeId)
  if (bytes > 0 && bytes <= nodeIdBytesMax) return
  throw new GossipConfigError(
    'gossip_name_invalid',
    `A node id has 1 to ${nodeIdBytesMax} bytes, but ${JSON.stringify(nodeId)} has ${bytes}.`,
  )
}

export function checkSecrets(secrets: readonly string[], boundHost: string): void {
  if (secrets.length === 0 && !isLoopback(boundHost)) {
    throw new GossipConfigError(
      'gossip_secret_missing',
      `Gossip on ${boundHost} is open to the network and needs a secret. Give every node the same ` +
        'secret (openssl rand -base64 32), or bind gossip to 127.0.0.1.',
    )
  }
  // Finds only the errors that do not depend on the cluster. Whether two secrets share a key id depends on
  // the cluster's name, so the real key ring checks that later.
  for (const secret of secrets) makeRing([secret])
  if (secrets.length > secretsMax || new Set(secrets).size < secrets.length) makeRing(secrets)
}

export function checkPeers(peers: readonly string[]): void {
  const wrong = peers.find((peer) => !peer.startsWith('srv:') && parseAddress(peer) === undefined)
  if (wrong === undefined) return
  throw new GossipConfigError(
    'gossip_address_invalid',
    `${JSON.stringify(wrong)} is not a peer address: write host:port, [v6]:port or srv:name.`,
  )
}

export function checkAdvertise(advertise: string): void {
  parseAdvertised(advertise, longestPort)
}

/** The address where peers can reach us. */
export function advertisedAddress(advertise: string | undefined, bound: Address): Address {
  const { host, port } = parseAddress(bound) ?? { host: bound, port: 0 }
  if (advertise !== undefined) return parseAdvertised(advertise, port)
  return host === '0.0.0.0' || host === '::' ? formatAddress({ host: ownHost(), port }) : bound
}

const longestPort = 65_535
/** The longest valid host name. */
const hostBytesMax = 253

function parseAdvertised(advertise: string, boundPort: number): Address {
  const withPort = formatAddress({ host: advertise, port: boundPort })
  const given = normalAddress(advertise) ?? normalAddress(withPort)
  const host = parseAddress(given ?? '')?.host
  if (given !== undefined && host !== undefined && Buffer.byteLength(host) <= hostBytesMax) {
    return given
  }
  throw new GossipConfigError(
    'gossip_address_invalid',
    `${JSON.stringify(advertise)} cannot be advertised: write host, host:port or [v6]:port, ` +
      `with a host of at most ${hostBytesMax} bytes.`,
  )
}

function makeRing(secrets: readonly string[]): KeyRing {
  return new KeyRing('any cluster', secrets)
}

/** The first external address, IPv4 before IPv6. */
function ownHost(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const outside = all.filter(({ internal, address }) => !internal && !address.startsWith('fe80'))
  const first = outside.find(({ family }) => family === 'IPv4') ?? outside[0]
  return first?.address ?? '127.0.0.1'
}
