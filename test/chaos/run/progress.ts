import type { Clients } from '../clients/clients.ts'
import { monotonicMs } from '../history/clock.ts'

const everyMs = 1_000

/** The status line of a run. */
export class Progress {
  readonly #clients: Clients
  readonly #print: (line: string) => void
  readonly #startMs = monotonicMs()
  readonly #timer: NodeJS.Timeout
  #phase = 'starting'
  #pushedBefore = 0
  faults = 0
  left: number | undefined

  constructor(clients: Clients, print: (line: string) => void) {
    this.#clients = clients
    this.#print = print
    this.#timer = setInterval(() => this.#tell(), everyMs)
  }

  phase(name: string): void {
    this.#phase = name
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #tell(): void {
    const { pushed, popped, notOk } = this.#clients.counts
    const seconds = Math.round((monotonicMs() - this.#startMs) / 1_000)
    const perSecond = Math.max(0, pushed - this.#pushedBefore)
    this.#pushedBefore = pushed
    const left = this.left === undefined ? '' : `, ${this.left} left`
    this.#print(
      `${seconds} s  ${this.#phase}: ${pushed} pushed (${perSecond}/s), ${popped} popped, ` +
        `${notOk} calls not ok, ${this.faults} faults${left}`,
    )
  }
}
