import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'

/** Creates a migrations folder with these files, and removes it at the end of the test. */
export function migrationsFolder(t: Test, files: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(tmpdir(), 'rouse-migrations-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  mkdirSync(join(directory, 'functions'))
  for (const [name, text] of Object.entries(files)) {
    const path = join(directory, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
  return directory
}
