import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export interface FsyncShim {
  /** The environment for the affected server. */
  readonly env: Readonly<Record<string, string>>
  harm(how: `slow ${number}` | 'fail'): Promise<void>
  heal(): Promise<void>
}

const source = fileURLToPath(new URL('fsync-shim.c', import.meta.url))
const run = promisify(execFile)

/** Fails if there is no C compiler. */
export async function buildFsyncShim(folder: string): Promise<FsyncShim> {
  const library = join(folder, 'fsync-shim.so')
  const control = join(folder, 'fsync-shim.txt')
  await run('cc', ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl'])
  return {
    env: { LD_PRELOAD: library, CHAOS_FSYNC_FILE: control },
    harm: (how) => writeFile(control, how),
    heal: () => rm(control, { force: true }),
  }
}
