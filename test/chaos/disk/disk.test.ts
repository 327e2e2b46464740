import { execFile } from 'node:child_process'
import { chmod, mkdtemp, open, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { type DiskImage, mountDisk } from './disk.ts'
import { buildFsyncShim, type FsyncShim } from './fsync-shim.ts'

test('after a power loss a disk has only what was flushed', async (t) => {
  const disk = await orSkip(t, (folder) => mountDisk(folder))
  if (disk === undefined) return
  t.teardown(() => disk.stop())
  const flushed = await open(join(disk.path, 'flushed'), 'w')
  await flushed.writeFile('kept')
  await flushed.sync()
  await flushed.close()
  await writeFile(join(disk.path, 'not-flushed'), 'gone')
  await disk.losePower()
  await t.rejects(writeFile(join(disk.path, 'after'), ''), 'nothing works without power')
  await disk.restorePower()
  t.same(await readdir(disk.path), ['flushed'])
})

test('a full disk accepts nothing until space is freed', async (t) => {
  const disk = await orSkip(t, (folder) => mountDisk(folder))
  if (disk === undefined) return
  t.teardown(() => disk.stop())
  await disk.fill()
  await t.rejects(writeMuch(disk), { code: 'ENOSPC' })
  await disk.free()
  await writeMuch(disk)
})

test('a flush fails or is slow on demand', async (t) => {
  const shim = await orSkip(t, (folder) => buildFsyncShim(folder))
  if (shim === undefined) return
  t.match(await flush(shim), /^ok/)
  await shim.harm('fail')
  t.match(await flush(shim), /^EIO/)
  await shim.harm('slow 300')
  const [outcome, ms] = (await flush(shim)).split(' ')
  t.equal(outcome, 'ok')
  t.ok(Number(ms) >= 300, `it took ${ms} ms`)
  await shim.heal()
  t.match(await flush(shim), /^ok/)
})

/** A disk image needs root and the shim a compiler; without them there is nothing to test. */
async function orSkip<Part extends DiskImage | FsyncShim>(
  t: Test,
  make: (folder: string) => Promise<Part>,
): Promise<Part | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'rouse-chaos-disk-'))
  await chmod(folder, 0o755)
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  try {
    return await make(folder)
  } catch (error) {
    t.comment(`not possible here: ${(error as Error).message}`)
    return undefined
  }
}

async function writeMuch({ path }: DiskImage): Promise<void> {
  await writeFile(join(path, 'much'), Buffer.alloc(16 * 1024 * 1024))
}

/**
 * Flushes in its own program, because the shim is loaded when a program starts. Prints `ok` or the error, and
 * the time it took.
 */
async function flush({ env }: FsyncShim): Promise<string> {
  const program = `
    const start = performance.now()
    let outcome = 'ok'
    try { require('node:fs').fsyncSync(require('node:fs').openSync('.', 'r')) } catch (e) { outcome = e.code }
    console.log(outcome, Math.ceil(performance.now() - start))`
  const { stdout } = await promisify(execFile)(
    'env',
    ['-i', ...Object.entries(env).map(([name, value]) => `${name}=${value}`)].concat(
      process.execPath,
      '-e',
      program,
    ),
    { cwd: tmpdir() },
  )
  return stdout.trim()
}
