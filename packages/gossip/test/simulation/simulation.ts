// One run, determined by its seed. Nodes start, stop, stall and lose contact while messages are pushed and
// waited for. Then everything heals, and all nodes must see each other again. Rules are checked all the time;
// `run` returns the first violations.
import { type Random, seededRandom } from '@rouse/testkit'
import { type GossipPreset, type Hint, presets } from '../../src/index.ts'
import {
  Application,
  consumerGroups,
  fallbackMs,
  type Message,
  Store,
  type WaitKey,
  waitKey,
} from './application.ts'
import { checkEchoes, checkInterest, checkReturn, checkWhole } from './invariants.ts'
import { changeQuality, cutBoth, failInTurn, splitInTwo } from './network-faults.ts'
import { NoticeWatch } from './notice-watch.ts'
import { unsigned } from './unsigned.ts'
import { perfect, VirtualNetwork } from './virtual-network.ts'
import type { VirtualNode } from './virtual-node.ts'

export interface SimulationOptions {
  readonly seed: number
  readonly nodeCount: number
  readonly faultsMs?: number
  /** The minimum and maximum time between two faults. */
  readonly faultGapMs?: readonly [number, number]
  /**
   * The time without faults at the end. It must cover the slowest hello interval, 15 s, and the handshake.
   */
  readonly healingMs?: number
  readonly isSigned?: boolean
  /** The number of nodes whose view of the cluster is checked each time. Default: all. */
  readonly checkedMax?: number
  readonly sabotage?: Sabotage
}

/** A deliberate defect of the nodes, to test whether the rules detect it. */
export type Sabotage =
  | Partial<GossipPreset>
  | 'no fallback'
  | 'losses unnoticed'
  | 'hints settled without waiters'

const checkEveryMs = 500
const watchEveryMs = 100
/** The time at the very end, when the network works again and some nodes get an additional address. */
const aliasedMs = 500
const refreshEveryMs = 10_000
const keyCount = 12
const brokenMax = 5

export class Simulation {
  readonly network: VirtualNetwork
  readonly store = new Store()
  readonly apps: Application[] = []
  readonly broken: string[] = []
  readonly #options: Required<Omit<SimulationOptions, 'isSigned' | 'sabotage'>>
  readonly #sabotage: Sabotage | undefined
  readonly #watch: NoticeWatch
  readonly #random: Record<'fault' | 'push' | 'interest' | 'check' | 'settle', Random>
  #incarnation = 0

  constructor({ isSigned = false, sabotage, ...options }: SimulationOptions) {
    const { seed, nodeCount } = options
    this.#options = {
      faultsMs: 30_000,
      faultGapMs: [1_000, 3_000],
      healingMs: 25_000,
      checkedMax: nodeCount,
      ...options,
    }
    this.#sabotage = sabotage
    const stream = (concern: number) => seededRandom(seed * 31 + 10 + concern)
    this.#random = {
      fault: stream(1),
      push: stream(2),
      interest: stream(3),
      check: stream(4),
      settle: stream(6),
    }
    this.network = new VirtualNetwork({
      seed,
      preset: { ...presets.lan, ...(typeof sabotage === 'object' ? sabotage : {}) },
      ...(isSigned ? { secrets: ['a secret for a simulation'] } : { signer: unsigned }),
    })
    this.#watch = new NoticeWatch(this.network)
  }

  /** Returns the violations. */
  run(): readonly string[] {
    const { nodeCount, faultsMs, faultGapMs, healingMs } = this.#options
    for (let index = 0; index < nodeCount; index += 1) this.#start(index, addressOf(index))
    this.#repeat(...faultGapMs, faultsMs, () => this.#breakSomething())
    this.#repeat(20, 200, faultsMs + healingMs, () => this.#push())
    const settledFrom = Math.max(faultsMs, faultsMs + healingMs - 12_000)
    this.#repeat(100, 1_000, settledFrom, () => this.#changeInterest())
    this.#repeat(checkEveryMs, checkEveryMs, faultsMs + healingMs, () => this.#check())
    this.#repeat(refreshEveryMs, refreshEveryMs, faultsMs + healingMs, () => this.#refreshAll())
    this.#repeat(watchEveryMs, watchEveryMs, faultsMs + healingMs, () => this.#checkNotices())
    this.network.runUntil(faultsMs)
    this.#heal()
    // The healing time of a stalled node begins when it resumes.
    const thawedAt = Math.max(faultsMs, ...this.running().map(({ node }) => node.stalledUntil))
    this.network.runUntil(thawedAt + healingMs - aliasedMs)
    this.#breaks(checkWhole(this.running(), this.network))
    this.#addAliases(this.running().slice(0, 5))
    this.network.runUntil(thawedAt + healingMs)
    return this.broken
  }

  running(): Application[] {
    return this.apps.filter(({ node }) => node.isRunning)
  }

  #start(index: number, address: string): void {
    this.#incarnation += 1
    const incarnation = this.#incarnation
    const app = new Application(this.network, this.store, (own) =>
      this.network.start(
        { nodeId: `node-${index}`, address, incarnation },
        {
          onHint: (hint, from, settle) => this.#hinted(own, hint, from, settle),
          onHintsLost: (from) => this.#alarmed(own, from),
          onContact: () => {
            own.hasContact = true
          },
          onPeer: (peer, event) => {
            own.peerChanged(peer, event)
            this.#watch.told(own, peer.nodeId)
            if (event === 'alive')
              this.#breaks(checkReturn(own, peer, this.network, this.apps.length))
          },
          onInterestEchoed: (version) => {
            own.echoed = version
          },
        },
      ),
    )
    if (this.#sabotage !== 'no fallback') app.startFallback()
    this.apps[index] = app
    this.#refresh(app)
  }

  #hinted(
    app: Application,
    { kind, scope, labels }: Hint,
    from: string,
    settle?: () => void,
  ): void {
    const isEverything = kind === 'EVERYTHING'
    this.#watch.told(app, from, isEverything ? undefined : scope)
    if (isEverything) return app.check('loss')
    const isSettled = app.told(scope, labels?.[0] ?? null)
    const isFalse = this.#sabotage === 'hints settled without waiters'
    if (settle !== undefined && (isSettled || isFalse)) this.#settle(app, settle)
  }

  /** A report may be late, or be missing because all waiters were just leaving. */
  #settle({ node }: Application, settle: () => void): void {
    const afterMs = this.#random.settle.pick([0, 0, 1, 4, 20, 'never'] as const)
    if (afterMs === 'never') return
    this.network.at(this.network.now + afterMs, () => {
      if (this.#isAwake(node)) settle()
    })
  }

  #alarmed(app: Application, from: string): void {
    if (this.#sabotage === 'losses unnoticed') return
    const sender = this.running().find(({ node }) => node.nodeId === from)
    this.#breaks(this.#watch.alarmed(app, sender))
    this.#watch.told(app, from)
    app.check('loss')
  }

  #checkNotices(): void {
    this.#breaks(this.#watch.check())
  }

  /** Reports the addresses of all running nodes, as the list of nodes in the database does. */
  #refresh({ node }: Application): void {
    const addresses = this.running().flatMap((app) => [app.node.address, ...app.node.aliases])
    this.network.act(node, (core, nowMs) => core.discovered(addresses, nowMs))
  }

  #refreshAll(): void {
    for (const app of this.running()) this.#refresh(app)
  }

  #breakSomething(): void {
    const random = this.#random.fault
    const app = random.pick(this.apps)
    const other = random.pick(this.apps)
    random.pick<() => void>([
      () => this.network.cut(app.node.address, other.node.address),
      () => cutBoth(this.network, app.node, other.node),
      () => splitInTwo(this.network, this.#nodes(), random),
      () => failInTurn(this.network, app.node, other.node, (...when) => this.#later(...when)),
      () => this.network.mendAll(),
      () => this.network.stall(app.node, 50 + random.below(6_000)),
      () => this.network.stepClock(app.node, random.below(20_000) - 10_000),
      () => this.#restart(app, { isGraceful: false }),
      () => this.#restart(app, { isGraceful: true }),
      () => this.#restartAll(),
      () => changeQuality(this.network, random),
      () => changeQuality(this.network, random),
      () => this.#addAliases([app]),
    ])()
    this.#disturbed()
  }

  /** Gives each node an additional address, as from another name or interface. */
  #addAliases(apps: readonly Application[]): void {
    for (const { node } of apps) {
      const alias = `10.2.${this.#random.fault.below(65_536)}.1:4601`
      if (node.isRunning) this.network.addAlias(node, alias)
    }
    this.#refreshAll()
  }

  #nodes(): VirtualNode[] {
    return this.apps.map(({ node }) => node)
  }

  /** Schedules a later step of a fault, unless the time of faults is over by then. */
  #later(afterMs: number, action: () => void): void {
    const at = this.network.now + afterMs
    if (at >= this.#options.faultsMs) return
    this.network.at(at, () => {
      action()
      this.#disturbed()
    })
  }

  #restartAll(): void {
    if (this.#random.fault.below(4) > 0) return
    for (const app of this.running()) this.#restart(app, { isGraceful: false })
  }

  /** Stops a node. It starts again after a while with the same id, often at the same address. */
  #restart(app: Application, { isGraceful }: { readonly isGraceful: boolean }): void {
    const { node } = app
    if (!node.isRunning) return
    if (isGraceful) this.network.act(node, (core, nowMs) => core.leave(nowMs))
    const random = this.#random.fault
    const index = this.apps.indexOf(app)
    const downMs = random.pick([0, 200, 3_000, 9_000])
    const moves = random.below(4) === 0
    this.network.at(this.network.now + (isGraceful ? 100 : 0), () => this.network.crash(node))
    this.network.at(this.network.now + 101 + downMs, () => {
      if (this.apps[index]?.node.isRunning !== false) return
      this.#start(index, moves ? `10.1.${this.#incarnation}.1:4601` : node.address)
    })
  }

  #heal(): void {
    Object.assign(this.network.quality, perfect)
    this.network.mendAll()
    this.#refreshAll()
    this.#disturbed()
  }

  #disturbed(): void {
    this.#watch.disturbed()
    this.#checkNotices()
  }

  #push(): void {
    const random = this.#random.push
    const scope = `q/${random.below(keyCount)}`
    const app = random.pick(this.apps)
    const groups = random.below(4) === 0 ? [random.pick(consumerGroups)] : consumerGroups
    const spread = random.pick(['one', 'one', 'all'] as const)
    if (!this.#isAwake(app.node)) return
    for (const group of groups) {
      const key = waitKey(scope, group)
      if (!app.waits.has(key)) this.#watch.pushed(app, key, spread, this.running())
    }
    for (const [key, message] of app.push(scope, groups, spread)) this.#checkLater(key, message)
  }

  /** The fallback poll finds what no hint announced. */
  #checkLater(key: WaitKey, message: Message): void {
    const { now } = this.network
    this.network.at(now + fallbackMs + 1, () => {
      if (!this.store.has(key, message)) return
      const idle = this.running().find(
        (one) => (one.waits.get(key)?.since ?? Infinity) < now && this.#hasBeenAwake(one.node, now),
      )
      if (idle !== undefined) {
        this.#breaks([
          `${idle.node.nodeId} waited for ${key} and missed a message pushed at ${now}`,
        ])
      }
    })
  }

  #changeInterest(): void {
    const random = this.#random.interest
    const app = random.pick(this.apps)
    const key = waitKey(`q/${random.below(keyCount)}`, random.pick(consumerGroups))
    if (!this.#isAwake(app.node)) return
    if (app.waits.has(key) && random.below(3) > 0) app.stopWaiting(key)
    else app.wait(key)
  }

  #isAwake(node: VirtualNode): boolean {
    return node.isRunning && node.stalledUntil <= this.network.now
  }

  #hasBeenAwake(node: VirtualNode, since: number): boolean {
    return node.isRunning && node.stalledUntil <= since
  }

  #check(): void {
    const awake = this.running().filter(({ node }) => this.#isAwake(node))
    const { checkedMax } = this.#options
    const from = this.#random.check.below(awake.length)
    const checked = awake.slice(from, from + checkedMax)
    const { now } = this.network
    this.#breaks(checkEchoes(checked, this.network, this.running().length))
    this.#breaks(checkInterest(checked, awake, now))
  }

  #breaks(rules: readonly string[]): void {
    const room = brokenMax - this.broken.length
    this.broken.push(...rules.slice(0, room).map((rule) => `at ${this.network.now} ms: ${rule}`))
  }

  #repeat(leastMs: number, mostMs: number, untilMs: number, action: () => void): void {
    const random = seededRandom(this.#options.seed * 31 + leastMs + mostMs)
    const again = (at: number) => {
      if (at >= untilMs) return
      this.network.at(at, () => {
        action()
        again(at + leastMs + (mostMs - leastMs) * random.next())
      })
    }
    again(leastMs)
  }
}

function addressOf(index: number): string {
  return `10.0.${index >> 8}.${index & 255}:4601`
}
