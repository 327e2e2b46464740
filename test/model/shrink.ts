// Shortens a failing sequence by leaving out steps. fast-check would also shrink the arguments of each step,
// which takes minutes and helps the reader least.

/**
 * Runs the steps with these indexes. Resolves with the number of steps after which the sequence failed;
 * undefined if it passed.
 */
export type Attempt = (kept: readonly number[]) => Promise<number | undefined>

/**
 * Leaves out halves, quarters, … single steps, as long as the rest still fails. Returns the remaining
 * indexes.
 */
export async function shrink(
  kept: readonly number[],
  attempt: Attempt,
  isOver: () => boolean,
): Promise<readonly number[]> {
  let left = kept
  let size = Math.ceil(kept.length / 2)
  while (size > 0 && !isOver()) {
    const before = left.length
    // Goes backwards from the end, because later steps depend on earlier ones.
    for (let begin = before - size; begin > -size && !isOver(); begin -= size) {
      const fewer = left.filter((_, i) => i < begin || i >= begin + size)
      const failedAfter = fewer.length === 0 ? undefined : await attempt(fewer)
      if (failedAfter !== undefined) left = fewer.slice(0, failedAfter)
    }
    // Repeats the round of single steps as long as a round leaves out some.
    size = size > 1 ? Math.floor(size / 2) : left.length < before ? 1 : 0
  }
  return left
}
