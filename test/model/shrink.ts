// Makes a sequence that fails short. fast-check tries the arguments of each step as well, and takes minutes for what a reader
// needs least: here steps are left out, and the rest stays as it was drawn.

/** Runs the steps with these indexes. Answers after how many of them it failed; undefined: it did not. */
export type Attempt = (kept: readonly number[]) => Promise<number | undefined>

/** Leaves out halves, quarters, … single steps, while what is left still fails. Answers the indexes that are left. */
export async function shrink(
  kept: readonly number[],
  attempt: Attempt,
  isOver: () => boolean,
): Promise<readonly number[]> {
  let left = kept
  let size = Math.ceil(kept.length / 2)
  while (size > 0 && !isOver()) {
    const before = left.length
    // From the end: what comes late depends on what comes early.
    for (let begin = before - size; begin > -size && !isOver(); begin -= size) {
      const fewer = left.filter((_, i) => i < begin || i >= begin + size)
      const failedAfter = fewer.length === 0 ? undefined : await attempt(fewer)
      if (failedAfter !== undefined) left = fewer.slice(0, failedAfter)
    }
    // Single steps once more, as long as that helps.
    size = size > 1 ? Math.floor(size / 2) : left.length < before ? 1 : 0
  }
  return left
}
