// A model of a cluster: nodes as in simulation.ts that share a database, and send each other hints as gossip
// does. A hint goes first to as few peers as can serve its consumer groups, and to the others if those do
// not report in time that their waiters took everything.
import type { WaitGroup, WakeHint } from '@rouse/protocol'
import { isMeant, ModelDatabase, type Place } from './model-database.ts'
import { Choices, Schedule } from './schedule.ts'
import { Simulation } from './simulation.ts'

/** Deliberate defects of the cluster. The rules must detect each of them. */
export type ClusterSabotage = 'served groups get no second hint' | 'the others are never asked'

export interface ClusterSimulationOptions {
  readonly seed: number
  readonly groups: readonly WaitGroup[]
  readonly sabotage?: ClusterSabotage
  /** If true, nodes verify by polls what they know from hints. */
  readonly hasPolls?: boolean
}

const askMs = 3
const stepsMax = 200_000
/** How long a run with polls continues after its last action. */
const tailMs = 20_000

export class ClusterSimulation {
  readonly #options: ClusterSimulationOptions
  readonly #choices: Choices
  readonly #schedule = new Schedule()
  readonly #nodes: Simulation[] = []
  /** Hints that were sent to peers. */
  sent = 0

  constructor(options: ClusterSimulationOptions) {
    this.#options = options
    this.#choices = new Choices(options.seed)
    const database = new ModelDatabase()
    for (let id = 0; id < 3; id += 1) {
      const node: Simulation = new Simulation({
        seed: options.seed,
        isLossy: options.hasPolls === true,
        cluster: {
          choices: this.#choices,
          schedule: this.#schedule,
          database,
          groups: options.groups,
          broadcast: (hint, served) => this.#broadcast(node, hint, served),
          broadcastEverything: () => {
            for (const peer of this.#peersOf(node)) this.#after(() => peer.heardEverything())
          },
        },
      })
      this.#nodes.push(node)
    }
  }

  get nodes(): readonly Simulation[] {
    return this.#nodes
  }

  run(): readonly string[] {
    const lastAt = Math.max(...this.#nodes.map((node) => node.begin()))
    const endsAt = this.#options.hasPolls === true ? lastAt + tailMs : Number.POSITIVE_INFINITY
    for (let step = 0; this.#step(endsAt); step += 1) {
      if (step > stepsMax) return ['the run never ends']
    }
    for (const node of this.#nodes) node.checkTheEnd()
    return this.#nodes.flatMap(({ violations }) => violations)
  }

  #step(endsAt: number): boolean {
    const next = this.#nodes.reduce((a, b) => (a.nextActionAt() <= b.nextActionAt() ? a : b))
    const at = Math.min(next.nextActionAt(), this.#schedule.nextAt())
    if (at === Number.POSITIVE_INFINITY || at > endsAt) return false
    if (next.nextActionAt() > this.#schedule.nextAt()) {
      this.#schedule.runNext()
      return true
    }
    this.#schedule.now = Math.max(this.#schedule.now, at)
    next.act()
    return true
  }

  #broadcast(from: Simulation, hint: WakeHint, served: ReadonlySet<string>): void {
    const { sabotage } = this.#options
    if (sabotage === 'served groups get no second hint' && hint.group != null) return
    const wanted = new Set<string>()
    const interested = this.#peersOf(from).filter((peer) => {
      const names = groupsOf(peer, hint).filter((name) => !served.has(name))
      for (const name of names) wanted.add(name)
      return names.length > 0
    })
    const asked = interested.filter((peer) => {
      const names = groupsOf(peer, hint).filter((name) => wanted.has(name))
      for (const name of names) wanted.delete(name)
      return names.length > 0
    })
    const waitingFor = new Set(asked)
    for (const peer of asked) this.#send(peer, hint, () => waitingFor.delete(peer))
    if (sabotage === 'the others are never asked') return
    this.#schedule.after(askMs, () => {
      if (waitingFor.size === 0) return
      for (const peer of interested) if (!asked.includes(peer)) this.#send(peer, hint, () => {})
    })
  }

  #send(peer: Simulation, hint: WakeHint, onServed: () => void): void {
    this.sent += 1
    this.#after(() => peer.heard(hint, () => this.#after(onServed)))
  }

  #after(run: () => void): void {
    this.#schedule.after(this.#choices.between(0, this.#choices.chance(0.8) ? 2 : 20), run)
  }

  #peersOf(node: Simulation): Simulation[] {
    return this.#nodes.filter((one) => one !== node)
  }
}

/** The consumer groups on this node that a hint concerns, as the node advertises them. */
function groupsOf(node: Simulation, hint: WakeHint): string[] {
  const groups = node.manager.interests().groups.filter((group) => isMeant(hint as Place, group))
  const names = new Set(groups.map(({ group }) => group))
  return hint.group == null ? [...names] : [...names].filter((name) => name === hint.group)
}
