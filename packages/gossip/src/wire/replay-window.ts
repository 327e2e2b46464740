const words = 32
const windowSize = words * 32
const noneSeen: readonly number[] = Array.from({ length: words }, () => 0)

/** Which of the last 1,024 numbers of a rising series were seen. Each is accepted once, in any order; older
 * numbers count as seen. */
export class ReplayWindow {
  /** Signed words in a plain array, which needs two thirds of the memory of a typed one. */
  readonly #bits: number[] = noneSeen.slice()
  #highest = -1

  /** Everything up to `highest` counts as seen. */
  startAfter(highest: number): void {
    this.#highest = highest
    this.#bits.fill(-1)
  }

  accept(number: number): boolean {
    if (number > this.#highest) {
      this.#advanceTo(number)
    } else if (number <= this.#highest - windowSize || this.#has(number)) {
      return false
    }
    const at = number % windowSize
    const word = at >>> 5
    this.#bits[word] = (this.#bits[word] ?? 0) | (1 << (at & 31))
    return true
  }

  /** How many numbers above `number` were accepted. */
  countAbove(number: number): number {
    let count = 0
    const least = Math.max(number + 1, this.#highest - windowSize + 1, 0)
    for (let seen = least; seen <= this.#highest; seen += 1) if (this.#has(seen)) count += 1
    return count
  }

  /** A sender numbers its datagrams across all its peers, so in a large cluster the numbers arrive here
   * hundreds apart. The gap is cleared one word at a time. */
  #advanceTo(number: number): void {
    if (number - this.#highest >= windowSize) {
      this.#bits.fill(0)
    } else {
      let passed = this.#highest + 1
      while (passed <= number) {
        const at = passed % windowSize
        const word = at >>> 5
        const count = Math.min(32 - (at & 31), number - passed + 1)
        this.#bits[word] = (this.#bits[word] ?? 0) & ~((2 ** count - 1) << (at & 31))
        passed += count
      }
    }
    this.#highest = number
  }

  #has(number: number): boolean {
    const at = number % windowSize
    return ((this.#bits[at >>> 5] ?? 0) & (1 << (at & 31))) !== 0
  }
}
