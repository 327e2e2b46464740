import type { GrantOutcome, WaitGroup, WakeHint } from '@rouse/protocol'
import type { Coordinator, Grant } from '../../src/index.ts'

interface Group {
  description: WaitGroup
  waiting: number
  inFlight: Grant | undefined
  dirty: boolean
}

/**
 * Does the minimum that a primary must do: it gives one grant at a time per wait group, and another one if
 * anything happened during the first. The rest of the SharedStateManager (other workers, backoff, timeouts)
 * has its own tests.
 */
export class TestCoordinator implements Coordinator {
  readonly outcomes: GrantOutcome[] = []
  readonly blocked: number[] = []
  unknownOutcomes = 0
  onGrant: (grant: Grant) => void = () => {}
  readonly #groups = new Map<string, Group>()
  #grants = 0

  setWaiting(description: WaitGroup, count: number): void {
    this.#group(description).waiting = count
  }

  requestGrant(description: WaitGroup): void {
    this.#hint(this.#group(description))
  }

  grantTaken(): void {}

  releaseGroup(grant: Grant, outcome: GrantOutcome): void {
    this.outcomes.push(outcome)
    const group = this.#group(grant.description)
    group.inFlight = undefined
    if (group.dirty || outcome === 'contended' || outcome === 'messages') this.#hint(group)
  }

  notifyMessageAvailable(woken: readonly WakeHint[]): void {
    for (const { queue } of woken) {
      for (const group of this.#groups.values()) {
        const { source } = group.description
        if (!('queue' in source) || source.queue === queue) this.#hint(group)
      }
    }
  }

  notifyPartitionFree(woken: readonly WakeHint[]): void {
    this.notifyMessageAvailable(woken)
  }

  notifyBlocked(untilMs: number): void {
    this.blocked.push(untilMs)
  }

  notifyOutcomeUnknown(): void {
    this.unknownOutcomes += 1
    for (const group of this.#groups.values()) this.#hint(group)
  }

  waitingOf(queue: string): number {
    let count = 0
    for (const { description, waiting } of this.#groups.values()) {
      if ('queue' in description.source && description.source.queue === queue) count += waiting
    }
    return count
  }

  #hint(group: Group): void {
    group.dirty = group.inFlight !== undefined
    if (group.inFlight !== undefined || group.waiting === 0) return
    this.#grants += 1
    const grant = { description: group.description, grantId: this.#grants }
    group.inFlight = grant
    setImmediate(() => this.onGrant(grant))
  }

  #group(description: WaitGroup): Group {
    const key = JSON.stringify(description)
    let group = this.#groups.get(key)
    if (group === undefined) {
      group = { description, waiting: 0, inFlight: undefined, dirty: false }
      this.#groups.set(key, group)
    }
    return group
  }
}
