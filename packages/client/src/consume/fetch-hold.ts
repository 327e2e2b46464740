/** The maximum time for which a fetch is held back. */
const holdMs = 5

/** Holds the next fetch back for a few milliseconds, so that it returns more. */
export class FetchHold {
  readonly #onOver: () => void
  #current: { isOver: boolean; readonly timer: ReturnType<typeof setTimeout> } | undefined

  constructor(onOver: () => void) {
    this.#onOver = onOver
  }

  /** Whether the next fetch is still held back. `wanted`: there is a reason to. */
  isHeld(wanted: boolean): boolean {
    if (!wanted || this.#current?.isOver === true) {
      clearTimeout(this.#current?.timer)
      this.#current = undefined
      return false
    }
    if (this.#current !== undefined) return true
    const hold = {
      isOver: false,
      timer: setTimeout(() => {
        hold.isOver = true
        this.#onOver()
      }, holdMs),
    }
    this.#current = hold
    return true
  }
}
