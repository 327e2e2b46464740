// A file system in a file, which can fill up and lose power. After a power loss it has only what was flushed.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdir, open, rm, statfs, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from '@rouse/testkit'

export interface DiskImage {
  readonly path: string
  /** Uses up all free space. */
  fill(): Promise<void>
  free(): Promise<void>
  /** Flushes everything written so far. */
  flush(): Promise<void>
  /** After this, nothing reaches the disk, and every file operation fails. */
  losePower(): Promise<void>
  /** Mounts the disk again once no file on it is open. */
  restorePower(): Promise<void>
  stop(): Promise<void>
}

const GiB = 1024 ** 3
/** Sparse: only written blocks use space. */
const imageBytes = 8 * GiB
const smallestFill = 65_536
const patience = { timeoutMs: 60_000, intervalMs: 100 }

/** Fails if this machine does not permit a disk image; the error message is the missing requirement. */
export async function mountDisk(folder: string): Promise<DiskImage> {
  if (process.getuid?.() !== 0) throw new Error('root, to mount a disk image')
  const image = join(folder, 'disk.xfs')
  const path = join(folder, 'disk')
  const filler = join(path, 'filler')
  await mkdir(path, { recursive: true })
  await (await open(image, 'w')).close()
  await truncate(image, imageBytes)
  await run('mkfs.xfs', ['-q', image])
  await mount()
  const watchdog = unmountAfterUs(path)

  async function mount(): Promise<void> {
    await run('mount', ['-o', 'loop,discard', image, path])
  }

  /** Retries, because a process that has just exited may hold a file for a moment longer. */
  async function unmount(): Promise<void> {
    await eventually(
      () =>
        run('umount', [path]).then(
          () => true,
          () => false,
        ),
      patience,
    )
  }

  async function available(): Promise<number> {
    const { bavail, bsize } = await statfs(path)
    return bavail * bsize
  }

  return {
    path,
    async fill() {
      let size = 0
      // The reported free space may not be available in one piece; the rest is taken in ever smaller pieces.
      for (let bytes = await available(); bytes >= smallestFill; ) {
        const isTaken = await run('xfs_io', ['-f', '-c', `falloc ${size} ${bytes}`, filler]).then(
          () => true,
          () => false,
        )
        if (isTaken) size += bytes
        bytes = Math.min(Math.floor(bytes / (isTaken ? 1 : 2)), await available())
      }
    },
    free: () => rm(filler, { force: true }),
    async flush() {
      await run('sync', ['--file-system', path])
    },
    async losePower() {
      await run('xfs_io', ['-x', '-c', 'shutdown', path])
    },
    async restorePower() {
      await unmount()
      await mount()
    },
    async stop() {
      await unmount()
      watchdog.stdin?.end('unmounted\n')
    },
  }
}

const run = promisify(execFile)

/** If the harness is killed, the shell sees its pipe close and unmounts the disk. */
function unmountAfterUs(path: string): ChildProcess {
  const script = 'read -r word && exit 0; sleep 2; umount --lazy "$1"'
  const shell = spawn('/bin/sh', ['-c', script, 'chaos-watchdog', path], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  shell.unref()
  shell.stdin?.on('error', () => {})
  return shell
}
