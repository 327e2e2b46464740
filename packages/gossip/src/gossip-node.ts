// A GossipCore with a socket, a clock and a timer.
import { randomBytes } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { steadyNowMs } from './clock.ts'
import { GossipCore, type GossipStats } from './gossip-core.ts'
import type { OutgoingHint } from './hints/hint.ts'
import type { Interest } from './interest/own-interest.ts'
import { Discovery } from './membership/discovery.ts'
import type { PeerView } from './membership/peer-view.ts'
import { advertisedAddress, checkOptions, type GossipNodeOptions } from './options.ts'
import { presets } from './preset.ts'
import type { Address } from './transport/address.ts'
import { TickTimer } from './transport/tick-timer.ts'
import type { Transport } from './transport/transport.ts'
import { UdpTransport } from './transport/udp-transport.ts'
import { KeyRing } from './wire/key-ring.ts'

const resolveTimeoutMs = 2_000

export class GossipNode {
  readonly #options: GossipNodeOptions
  readonly #keyRing: KeyRing
  readonly #transport: Transport
  readonly #core: GossipCore
  readonly #discovery: Discovery
  readonly #timer: TickTimer
  #address: Address = ''
  #started: Promise<Address> | undefined
  #stopped: Promise<void> | undefined

  /** Throws a GossipConfigError if the options cannot work. */
  constructor(options: GossipNodeOptions) {
    checkOptions(options)
    this.#options = options
    this.#keyRing = new KeyRing(options.clusterId, options.secrets)
    this.#transport = options.transport ?? new UdpTransport(options.bind)
    this.#core = this.#makeCore(options)
    this.#timer = new TickTimer(this.#core, steadyNowMs)
    this.#discovery = new Discovery({
      names: options.names ?? new Resolver({ timeout: resolveTimeoutMs, tries: 1 }),
      random,
      isAlone: () => this.#core.memberCount === 0,
      onAddresses: (source, addresses) => {
        this.#core.discovered(addresses, steadyNowMs(), source)
        this.#timer.plan()
      },
    })
    this.#discovery.set('static', options.peers ?? [])
  }

  /** Resolves with the advertised address once datagrams can arrive. A stopped node cannot start again:
   * peers know that this incarnation has ended. */
  start(): Promise<Address> {
    if (this.#stopped !== undefined) return Promise.reject(new Error('gossip was stopped'))
    this.#started ??= this.#start()
    return this.#started
  }

  /** Sends leave messages first. With `leave: false` the node sends none, as if it had been killed. Resolves
   * when nothing is left running. */
  stop({ leave = true }: { readonly leave?: boolean } = {}): Promise<void> {
    this.#stopped ??= this.#stop(leave)
    return this.#stopped
  }

  /** Peer addresses from the database, numeric or by name. Each call replaces the whole list. */
  discovered(addresses: readonly string[]): void {
    this.#discovery.set('database', addresses)
  }

  /** What this node waits for. Each version must be greater than the one before. */
  setInterest(interest: Interest): void {
    this.#core.setInterest(interest, steadyNowMs())
    this.#timer.plan()
  }

  /** The consumer groups that peers may expect here for these scopes. A withdrawn one is included for as long
   * as peers may still count on it. */
  advertisedGroups(scopes: readonly string[]): Set<string> {
    return this.#core.advertisedGroups(scopes)
  }

  /** Sends a hint at the end of this turn of the event loop, or a little later when hints are frequent. */
  hint(hint: OutgoingHint): void {
    this.#core.hint(hint, steadyNowMs())
    this.#timer.plan()
  }

  /** Takes effect at once. To rotate, set `[old, new]` on all nodes, then `[new, old]`, then `[new]`. */
  replaceSecrets(secrets: readonly string[]): void {
    checkOptions({ ...this.#options, secrets })
    this.#keyRing.replace(secrets)
  }

  /** Whether any peer waits for something, as far as this node knows. */
  peersWait(): boolean {
    return this.#core.peersWait()
  }

  peers(): PeerView[] {
    return this.#core.peers(steadyNowMs())
  }

  stats(): GossipNodeStats {
    const { failures = 0, receiveBufferBytes = 0 } = this.#transport
    const verifiedByKey = this.#keyRing.verifiedByKey()
    return { ...this.#core.stats(), verifiedByKey, sendFailures: failures, receiveBufferBytes }
  }

  async #start(): Promise<Address> {
    await this.#transport.start((bytes, from) => {
      this.#core.receive(bytes, from, steadyNowMs())
      this.#timer.plan()
    })
    this.#address = advertisedAddress(this.#options.advertise, this.#transport.address)
    this.#timer.start()
    this.#discovery.start()
    return this.#address
  }

  async #stop(leave: boolean): Promise<void> {
    await this.#started?.catch(() => undefined)
    // The leave messages do not wait for the name service, which may be slow.
    const resolved = this.#discovery.stop()
    if (leave) this.#core.leave(steadyNowMs())
    else this.#core.fallSilent(steadyNowMs())
    await this.#timer.idle()
    this.#timer.stop()
    await this.#transport.stop()
    await resolved
  }

  #makeCore(options: GossipNodeOptions): GossipCore {
    const { preset = 'lan' } = options
    return new GossipCore(
      {
        clusterId: options.clusterId,
        nodeId: options.nodeId,
        incarnation: options.incarnation,
        advertise: () => this.#address,
        signer: this.#keyRing,
        preset: typeof preset === 'string' ? presets[preset] : preset,
        random,
      },
      {
        send: (bytes, to) => this.#transport.send(bytes, to),
        onHint: (hint, from, settle) => {
          if (settle === undefined) return options.onHint(hint, from)
          options.onHint(hint, from, () => {
            settle(steadyNowMs())
            this.#timer.plan()
          })
        },
        onContact: () => options.onContact?.(),
        onPeer: (peer, event) => options.onPeer?.(peer, event),
        onHintsLost: (from, count) => options.onHintsLost?.(from, count),
        onInterestEchoed: (version) => options.onInterestEchoed?.(version),
        onPeerInterest: () => options.onPeerInterest?.(),
        onSuperseded: (incarnation) => options.onSuperseded?.(incarnation),
        get onHintsSent() {
          return options.onHintsSent
        },
      },
      steadyNowMs(),
    )
  }
}

export interface GossipNodeStats extends GossipStats {
  /** The number of verified datagrams per key. A secret can be removed once the number of its key stops
   * growing. */
  readonly verifiedByKey: ReturnType<KeyRing['verifiedByKey']>
  /** Datagrams that could not be sent, and socket errors. */
  readonly sendFailures: number
  /** The receive buffer that the system granted. Linux reports twice the requested size. */
  readonly receiveBufferBytes: number
}

function random(): number {
  return randomBytes(4).readUInt32BE() / 2 ** 32
}
