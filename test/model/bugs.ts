// Bugs to be put into the product, each a fix of the past taken back: the model must notice them.
import type pg from 'pg'
import { breakProduct, brokenFiles } from '../chaos/bugs/break-product.ts'
import type { Replacement } from '../chaos/bugs/bug.ts'

export interface ModelBug {
  readonly name: string
  readonly does: string
  readonly replaces: readonly Replacement[]
}

export const modelBugs: readonly ModelBug[] = []

export function modelBug(name: string): ModelBug {
  const bug = modelBugs.find((one) => one.name === name)
  if (bug !== undefined) return bug
  throw new RangeError(
    `no bug "${name}"; there are: ${modelBugs.map((one) => one.name).join(', ')}`,
  )
}

const barrierLine = /^([ \t]*)-- barrier: ([a-z0-9-]+)[ \t]*$/gm

/** With their barriers, which the model's database has everywhere. */
export async function seedFunctions(pool: pg.Pool, { replaces }: ModelBug): Promise<void> {
  const functions = replaces.filter(({ file }) => file.endsWith('.sql'))
  for (const text of (await brokenFiles(functions)).values()) {
    await pool.query(text.replace(barrierLine, `$1perform rouse_test.barrier('$2');`))
  }
}

export function seedModules({ replaces }: ModelBug): Readonly<Record<string, string>> {
  return breakProduct(replaces.filter(({ file }) => file.endsWith('.js'))).nodeEnv ?? {}
}
