// Writes a bundle with the file that runs it from the code cache.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../run.mjs'

/** The path of code-cache.cjs, as a literal for the text of `main`. */
export const launcher = JSON.stringify(join(root, 'scripts/test/code-cache.cjs'))

/** Returns the path of `main`, whose text gets the path of the bundle. */
export function writeBundle(folder, { hash, contents }, main) {
  const mainPath = join(folder, main.name)
  const script = join(folder, `bundle-${hash.replaceAll(/\W/g, '')}.cjs`)
  // Another run may be using the folder, and its caches are still valid.
  if (existsSync(mainPath) && existsSync(script)) return mainPath
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  writeFileSync(script, contents)
  writeFileSync(mainPath, main.text(script))
  return mainPath
}
