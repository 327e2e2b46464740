import { networkInterfaces } from 'node:os'
import {
  type Address,
  formatAddress,
  type HostAndPort,
  isLoopback,
  parseAddress,
} from './address.ts'
import type { NameService } from './discovery.ts'
import { GossipConfigError } from './gossip-config-error.ts'
import { nodeIdBytesMax } from './message-reader.ts'
import type { GossipPorts } from './ports.ts'
import type { GossipPreset, PresetName } from './preset.ts'
import type { Transport } from './transport.ts'

export interface GossipNodeOptions extends Omit<GossipPorts, 'send'> {
  readonly clusterId: string
  /** Unique in the cluster, the same after a restart. */
  readonly nodeId: string
  /** Greater with every start; a sequence in the database is a good source. */
  readonly incarnation: number | bigint
  /** The first signs, all verify; see key-ring.ts. None: only on loopback. */
  readonly secrets: readonly string[]
  readonly bind: HostAndPort
  /** `host[:port]` where peers reach us, if that is not where we are bound. */
  readonly advertise?: string | undefined
  /** `host:port`, by number or name, or `srv:name`. Peers in the database come by `discovered`. */
  readonly peers?: readonly string[] | undefined
  readonly preset?: PresetName | GossipPreset | undefined
  /** In place of UDP. */
  readonly transport?: Transport | undefined
  readonly names?: NameService | undefined
}

/** Throws a GossipConfigError that says what to change. */
export function checkOptions({
  nodeId,
  clusterId,
  secrets,
  bind,
  peers = [],
}: GossipNodeOptions): void {
  if (clusterId === '' || nodeId === '' || Buffer.byteLength(nodeId) > nodeIdBytesMax) {
    throw new GossipConfigError(
      'gossip_name_invalid',
      `Cluster and node need a name, and that of a node has ${nodeIdBytesMax} bytes at most.`,
    )
  }
  if (secrets.length === 0 && !isLoopback(bind.host)) {
    throw new GossipConfigError(
      'gossip_secret_missing',
      `Gossip on ${bind.host} is open to the network and needs a secret. Give every node the same ` +
        'one (openssl rand -base64 32), or bind gossip to 127.0.0.1.',
    )
  }
  const wrong = peers.find((peer) => !peer.startsWith('srv:') && parseAddress(peer) === undefined)
  if (wrong !== undefined) {
    throw new GossipConfigError(
      'gossip_address_invalid',
      `${JSON.stringify(wrong)} is no address of a peer: write host:port, [v6]:port or srv:name.`,
    )
  }
}

/** Where peers are told to find us. */
export function advertisedAddress(advertise: string | undefined, bound: Address): Address {
  const { host, port } = parseAddress(bound) ?? { host: bound, port: 0 }
  if (advertise !== undefined) {
    const given = parseAddress(advertise) ?? parseAddress(formatAddress({ host: advertise, port }))
    if (given !== undefined) return formatAddress(given)
    throw new GossipConfigError(
      'gossip_address_invalid',
      `${JSON.stringify(advertise)} cannot be advertised: write host, host:port or [v6]:port.`,
    )
  }
  return host === '0.0.0.0' || host === '::' ? formatAddress({ host: ownHost(), port }) : bound
}

/** The first address that others may reach, IPv4 before IPv6. */
function ownHost(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const outside = all.filter(({ internal, address }) => !internal && !address.startsWith('fe80'))
  const first = outside.find(({ family }) => family === 'IPv4') ?? outside[0]
  return first?.address ?? '127.0.0.1'
}
