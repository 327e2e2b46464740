// Connects the SharedStateHost and the timers of a primary to its peers, by gossip and the node registry.
// Only hints pass through here; if one is lost, the fallback poll finds the messages.

import {
  type Hint as GossipHint,
  GossipNode,
  type PeerEvent,
  type PeerView,
  presets,
} from '@rouse/gossip'
import type { WaitGroup, WakeHint } from '@rouse/protocol'
import type { ClusterIdentity, NodeRecord, Original, SeenNode } from '@rouse/storage'
import type pg from 'pg'
import type { Clock } from '../clock.ts'
import { reachable } from '../config/address-checks.ts'
import type { Config } from '../config/config.ts'
import { wordsOf } from '../config/setting.ts'
import type { Logger } from '../log.ts'
import { version } from '../version.ts'
import { CopiedDatabase } from './copied-database.ts'
import { DifferingDefaults } from './differing-defaults.ts'
import { fromGossip, interestOf, keysOf, type QueueHintKind, toGossip } from './hint-codec.ts'
import { LinkEvents, type WatchedEvents } from './link-events.ts'
import { createNodeRegistry, type NodeRegistry } from './node-registry.ts'
import { OwnGroups } from './own-groups.ts'
import { type ClusterStats, mergePeers } from './peer-stats.ts'
import { SilentPeers } from './silent-peers.ts'

/** The part of the SharedStateHost that the link calls. */
export interface LinkedHost {
  /** Another node has made contact and counts our hints from now on. */
  peerMet(): void
  /** The sender asked this node before others. Call `settle` only if waiters take everything
   * that the hint announces, in every wait group that it matches. A group that has no waiters now, but is kept
   * because they may return, counts, too. If
   * `settle` is not called within a few milliseconds, the other nodes get the hint. */
  heard(hint: WakeHint, settle?: () => void): void
  /** The options of a queue have changed. The values are in the database. */
  heardConfigured(hint: WakeHint): void
  /** Hints of a peer may be lost: any queue may have messages. */
  heardEverything(): void
  peersAreSilent(areSilent: boolean): void
  /** `peersWait` may have another result. */
  peersChanged(): void
  interestEchoed(version: number): void
  interests(): { readonly version: number; readonly groups: readonly WaitGroup[] }
}

export interface ClusterLinkOptions {
  readonly config: Config
  readonly identity: ClusterIdentity
  readonly pool: pg.Pool
  readonly clock: Clock
  readonly log: Logger
  readonly host: LinkedHost
  /** `expect`: something is due at this time of the database's clock. */
  readonly timers: { expect(dueAtMs: number): void }
  readonly events: WatchedEvents
  /** API keys have changed on another node. */
  readonly keys: { readAgain(): void }
  /** Another process uses our node id and started later. */
  readonly onSuperseded: (by: SeenNode) => void
}

const watchMs = 500
/** The one peer that gets a hint first has less time to report than waiters of this node have to pop: a
 * lost hint must be sent again soon enough to arrive within 10 ms. A pop takes 2 ms; after 3 ms and a round
 * trip, one report in ten is still on its way. */
const askShare = 0.3
/** After a write with an unknown outcome, a hint makes peers poll in rounds 1, 2, 4, 8 and 16. */
const unknownRoundsMax = 16

export class ClusterLink {
  readonly #options: ClusterLinkOptions
  readonly #gossip: GossipNode
  readonly #silent = new SilentPeers()
  readonly #ownGroups = new OwnGroups()
  readonly #defaults: DifferingDefaults
  readonly #copied: CopiedDatabase
  readonly #events: LinkEvents
  #registry: NodeRegistry | undefined
  #address = ''
  #httpUrl: string | null = null
  #watch: NodeJS.Timeout | undefined
  #interestIsDue = false
  #silentIds: readonly string[] = []
  #unknownRounds = unknownRoundsMax

  constructor(options: ClusterLinkOptions) {
    const { config, identity, log, host, events } = options
    this.#options = options
    const linkEvents = new LinkEvents(events, config.nodeId)
    this.#events = linkEvents
    this.#defaults = new DifferingDefaults(config.queueDefaults, log)
    this.#copied = new CopiedDatabase(log)
    this.#gossip = new GossipNode({
      clusterId: identity.clusterId,
      nodeId: config.nodeId,
      incarnation: identity.incarnation,
      bind: { host: config.gossipHost, port: config.gossipPort },
      advertise: config.gossipAdvertise,
      secrets: wordsOf(config.gossipSecret ?? ''),
      peers: config.gossipPeers,
      preset: { ...presets[config.gossipPreset], askMs: config.popWaitLocalFirstMs * askShare },
      onHint: (hint, from, settle) => {
        this.#events.received(hint, from)
        this.#heard(hint, settle)
      },
      get onHintsSent() {
        return linkEvents.onHintsSent
      },
      onPeer: (peer, event) => this.#peerChanged(peer, event),
      onHintsLost: (from, count) => {
        log.debug({ from, count }, 'hints were lost')
        this.#events.lost(from, count)
        host.heardEverything()
      },
      onContact: () => host.peerMet(),
      onInterestEchoed: (version) => host.interestEchoed(version),
      onPeerInterest: () => host.peersChanged(),
      onSuperseded: () => this.#registry?.recheckIdentity(),
    })
  }

  /** Throws if the socket cannot be bound or the address is not allowed. */
  async start(): Promise<void> {
    const { pool, clock, log, onSuperseded } = this.#options
    this.#address = await this.#gossip.start()
    log.info({ gossip: this.#address }, 'gossip listens')
    this.#registry = createNodeRegistry({
      pool,
      clock,
      log,
      own: () => this.#own(),
      onNodes: (others, copyOf) => this.#discovered(others, copyOf),
      onSuperseded,
    })
    await this.#registry.start()
    this.#watch = setInterval(() => {
      this.#checkSilentPeers()
      this.#repeatEverything()
    }, watchMs)
    const peers = this.#registry.others().length
    log.info({ peers }, 'joined the cluster')
  }

  /** A worker is ready, so peers may use our URL. */
  listening(url: string): void {
    const { config } = this.#options
    this.#httpUrl = config.advertiseUrl ?? reachable(url, config.host)
    this.#registry?.rewrite()
  }

  /** Without a leave message, peers consider this node missing until its row expires, as after a kill. */
  async stop({ leave = true }: { readonly leave?: boolean } = {}): Promise<void> {
    clearInterval(this.#watch)
    await Promise.all([this.#gossip.stop({ leave }), this.#registry?.stop({ leave })])
  }

  /** For each consumer group one peer with waiters gets the hint first, and the others if that peer does not
   * take the messages. `served`: consumer groups whose waiters on this node take them. A hint about the end of
   * messages is for all peers that wait for one. */
  broadcast(
    hint: WakeHint,
    kind: keyof typeof gossipKinds,
    { served }: { readonly served?: ReadonlySet<string> } = {},
  ): void {
    const isOneFirst = this.#options.config.popWaitLocalFirstMs > 0
    this.#gossip.hint({ ...toGossip(gossipKinds[kind], hint, isOneFirst), served })
  }

  /** Whether any other node waits for messages, as far as this node knows. */
  peersWait(): boolean {
    return this.#gossip.peersWait()
  }

  /** Sends only the version. Peers read the values from the database. */
  tellConfigured(hint: WakeHint, version: number): void {
    this.#gossip.hint({ ...toGossip('QUEUE_CONFIG_CHANGED', hint), value: version })
  }

  /**
   * A write with an unknown outcome may be committed now or later. Peers poll for all their waiters at once,
   * and a few more times at growing intervals.
   */
  broadcastEverything(): void {
    this.#unknownRounds = 0
    this.#hintEverything()
  }

  tellScheduled(queue: string, dueAtMs: number): void {
    this.#gossip.hint({ kind: 'SCHEDULED', scope: queue, count: 1, value: dueAtMs })
  }

  /** An announcement that is lost costs time: every node reads the keys every five seconds. */
  tellKeysChanged(): void {
    this.#gossip.hint({ kind: 'KEYS_CHANGED', scope: '', count: 1 })
  }

  /** Waiters often arrive together, so peers are notified once for all changes of one tick. */
  interestChanged(version: number): void {
    // Without living peers there is no confirmation to wait for.
    if (this.#gossip.peers().every(isGone)) this.#options.host.interestEchoed(version)
    if (this.#interestIsDue) return
    this.#interestIsDue = true
    setImmediate(() => this.#setInterest())
  }

  /** Replaces the secrets without a restart. */
  replaceSecret(secret: string | undefined): void {
    this.#gossip.replaceSecrets(wordsOf(secret ?? ''))
  }

  stats(): ClusterStats {
    return {
      url: this.#httpUrl,
      version,
      copy_of: this.#copied.original ?? null,
      peers: mergePeers(this.#registry?.others() ?? [], this.#gossip.peers()),
      gossip: { address: this.#address, ...this.#gossip.stats() },
    }
  }

  #setInterest(): void {
    if (!this.#interestIsDue) return
    this.#interestIsDue = false
    const { version, groups } = this.#options.host.interests()
    this.#ownGroups.replace(groups)
    const entries = groups.map(interestOf)
    this.#gossip.setInterest({ version, entries })
  }

  #repeatEverything(): void {
    if (this.#unknownRounds >= unknownRoundsMax) return
    this.#unknownRounds += 1
    if (Number.isInteger(Math.log2(this.#unknownRounds))) this.#hintEverything()
  }

  #hintEverything(): void {
    this.#gossip.hint({ kind: 'EVERYTHING', scope: '', count: 1 })
  }

  #own(): NodeRecord {
    const { config, identity } = this.#options
    return {
      id: config.nodeId,
      incarnation: identity.incarnation,
      httpUrl: this.#httpUrl,
      gossipAddress: this.#address,
      version,
      queueDefaults: config.queueDefaults,
    }
  }

  #heard(hint: GossipHint, settle: (() => void) | undefined): void {
    const { host, timers, keys, log } = this.#options
    switch (hint.kind) {
      case 'EVERYTHING':
        return host.heardEverything()
      case 'QUEUE_CONFIG_CHANGED':
        log.debug({ queue: hint.scope, version: hint.value }, 'queue options changed')
        return host.heardConfigured(fromGossip(hint))
      case 'KEYS_CHANGED':
        log.debug('API keys changed on another node')
        return keys.readAgain()
      case 'SCHEDULED':
        return hint.value === undefined ? undefined : timers.expect(hint.value)
      case 'MESSAGE_AVAILABLE':
      case 'PARTITION_FREE': {
        const heard = fromGossip(hint)
        const maySettle = settle !== undefined && this.#maySettle(heard)
        return maySettle ? host.heard(heard, settle) : host.heard(heard)
      }
    }
  }

  /** Whether the host sees every consumer group that the sender may expect here. A group that ended a moment
   * ago, or that waits only for other partitions, must get the message from another node. */
  #maySettle(hint: WakeHint): boolean {
    this.#setInterest()
    const keys = keysOf(hint)
    if (keys === undefined) return false
    const expected = this.#gossip.advertisedGroups(keys)
    for (const group of expected) {
      const isMeant = (hint.group ?? group) === group
      if (isMeant && !this.#ownGroups.match(keys, hint, group)) return false
    }
    return true
  }

  #discovered(others: readonly SeenNode[], copyOf: Original | undefined): void {
    this.#copied.seen(copyOf)
    this.#gossip.discovered(others.map(({ gossipAddress }) => gossipAddress))
    this.#defaults.compare(others)
    this.#checkSilentPeers()
  }

  #peerChanged(peer: PeerView, event: PeerEvent): void {
    const { log, host } = this.#options
    log.info({ peer: peer.nodeId, address: peer.address, event }, 'peer changed state')
    this.#events.peerChanged(peer.nodeId, event)
    if (event === 'joined') this.#registry?.rewrite()
    host.peersChanged()
    if (mayHaveMissed.has(event)) host.heardEverything()
    this.#checkSilentPeers()
  }

  #checkSilentPeers(): void {
    const { clock, log, host } = this.#options
    const others = this.#registry?.others() ?? []
    const silent = this.#silent.find(others, this.#gossip.peers(), clock.nowMs())
    if (silent.join() === this.#silentIds.join()) return
    const wereSilent = this.#silentIds.length > 0
    this.#silentIds = silent
    if (silent.length > 0)
      log.warn({ peers: silent }, 'peers unreachable by gossip; polling faster')
    else log.info('all peers reachable by gossip')
    if (wereSilent !== silent.length > 0) host.peersAreSilent(silent.length > 0)
  }
}

/** Hints that a peer sent before it became unreachable, or before we knew it, may not have arrived here. */
const mayHaveMissed: ReadonlySet<PeerEvent> = new Set(['joined', 'suspect', 'dead', 'left'])

const gossipKinds: Readonly<Record<'available' | 'free', QueueHintKind>> = {
  available: 'MESSAGE_AVAILABLE',
  free: 'PARTITION_FREE',
}

function isGone({ state }: PeerView): boolean {
  return state === 'dead' || state === 'left'
}
