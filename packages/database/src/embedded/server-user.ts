// PostgreSQL refuses to run as root. If this process is root, the server runs with the uid of `nobody`, so
// that no user has to be created. The files of the server must then be accessible to that uid.
import { chmod, chown, mkdir, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname } from 'node:path'

const nobodyId = 65_534

export interface ServerUser {
  readonly uid?: number
  readonly gid?: number
}

export function serverUser(): ServerUser {
  return isRoot() ? { uid: nobodyId, gid: nobodyId } : {}
}

export function isRoot(): boolean {
  return process.getuid?.() === 0
}

/** Creates a folder that the server can write to. */
export async function makeServerFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o755 })
  if (!isRoot()) return
  await chown(path, nobodyId, nobodyId)
  await chmod(path, 0o700)
}

/** Whether the server's user can reach this folder: every parent must be searchable. */
export async function serverCanReach(path: string): Promise<boolean> {
  if (!isRoot()) return true
  for (let folder = path; ; folder = dirname(folder)) {
    const info = await stat(folder)
    const bit = info.uid === nobodyId ? 0o100 : info.gid === nobodyId ? 0o010 : 0o001
    if ((info.mode & bit) === 0) return false
    if (folder === dirname(folder)) return true
  }
}

/** A folder for temporary files that the server can reach. It may be unable to reach root's TMPDIR. */
export async function reachableTmpdir(): Promise<string> {
  return (await serverCanReach(tmpdir())) ? tmpdir() : '/tmp'
}
