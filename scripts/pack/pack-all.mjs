import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../run.mjs'
import { stageRouse } from './stage-rouse.mjs'

/** Packs the built workspace. Resolves to one entry per tarball: `{ name, file, bytes, files }`. */
export async function packAll(folder) {
  mkdirSync(folder, { recursive: true })
  const stage = mkdtempSync(join(tmpdir(), 'rouse-pack-'))
  try {
    stageRouse(stage)
    return [await pack(stage, folder), await pack(join(root, 'packages', 'client'), folder)]
  } finally {
    rmSync(stage, { recursive: true })
  }
}

async function pack(from, folder) {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const { stdout } = await promisify(execFile)('npm', args, {
    cwd: from,
    maxBuffer: 16_000_000,
    shell: process.platform === 'win32',
  })
  const [{ name, filename, size, entryCount }] = JSON.parse(stdout)
  return { name, file: join(folder, filename), bytes: size, files: entryCount }
}
