// Reports when the mode of this node changes, and when the database stops answering it.
import type { SharedStateStats } from '@rouse/shared-state'
import type { NodeEvents } from '../observe/events/node-events.ts'

/** A listener that connects again within this time was only disconnected. */
const listenerLostMs = 1_000

export class HealthReports {
  readonly #events: Pick<NodeEvents, 'clusterChanged'>
  readonly #node: string
  readonly #nowMs: () => number
  /** As last reported. */
  mode: SharedStateStats['mode']['mode'] = 'healthy'
  #isDatabaseUp = true
  #listenerLostAtMs = Number.POSITIVE_INFINITY

  constructor(events: Pick<NodeEvents, 'clusterChanged'>, node: string, nowMs: () => number) {
    this.#events = events
    this.#node = node
    this.#nowMs = nowMs
  }

  modeChanged({ mode, why }: Pick<SharedStateStats['mode'], 'mode' | 'why'>): void {
    this.mode = mode
    const text =
      mode === 'aggressive'
        ? `${this.#node} polls at short intervals, because hints may be lost: ${why.join(', ')}.`
        : `${this.#node} relies on hints again.`
    this.#events.clusterChanged(mode, text, { why: mode === 'aggressive' ? why : [] })
  }

  listenerLost(): void {
    this.#listenerLostAtMs = Math.min(this.#listenerLostAtMs, this.#nowMs())
  }

  listenerBack(): void {
    this.#listenerLostAtMs = Number.POSITIVE_INFINITY
  }

  /** Workers report every second whether the database answers them. */
  workersReport(isUp: boolean): void {
    const isListening = this.#nowMs() - this.#listenerLostAtMs < listenerLostMs
    const isAllUp = isUp && isListening
    if (isAllUp === this.#isDatabaseUp) return
    this.#isDatabaseUp = isAllUp
    if (isAllUp) {
      this.#events.clusterChanged('database_back', `The database answers ${this.#node} again.`)
    } else {
      this.#events.clusterChanged('database_lost', `The database does not answer ${this.#node}.`)
    }
  }
}
