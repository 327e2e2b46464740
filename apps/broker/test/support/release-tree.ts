// A node of another release: a copy of the built program with its own migrations.
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'

const root = fileURLToPath(new URL('../../../..', import.meta.url))

/** The number of this release: the VERSION of its functions. */
export const release = Number(readFileSync(join(root, 'migrations/functions/VERSION'), 'utf8'))

export interface ReleaseOptions {
  /** Additional migrations, by file name. */
  readonly migrations?: Readonly<Record<string, string>>
  readonly version?: number
}

/** Makes the program of a release; returns its path. It is removed at the end of the test. */
export function releaseTree(t: Test, options: ReleaseOptions): string {
  const tree = mkdtempSync(join(tmpdir(), 'rouse-release-'))
  t.teardown(() => rmSync(tree, { recursive: true, force: true }))
  const packages = readdirSync(join(root, 'packages')).map((name) => `packages/${name}`)
  for (const folder of [...packages, 'apps/broker']) {
    for (const part of ['dist', 'node_modules', 'package.json']) {
      const from = join(root, folder, part)
      cpSync(from, join(tree, folder, part), { recursive: true, verbatimSymlinks: true })
    }
  }
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  cpSync(join(root, 'migrations'), join(tree, 'migrations'), { recursive: true })
  for (const [name, sql] of Object.entries(options.migrations ?? {})) {
    writeFileSync(join(tree, 'migrations', name), sql)
  }
  writeFileSync(join(tree, 'migrations/functions/VERSION'), String(options.version ?? release))
  return join(tree, 'apps/broker/dist/main.js')
}
