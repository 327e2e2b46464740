// Handles what an earlier run left in the data folder. postmaster.pid may name
//   no process        the old server died: PostgreSQL replaces the file without help
//   another process   the pid was reused: PostgreSQL would refuse to start, so the file is removed
//   our orphan        a server whose launcher died: stop it, then start the new server
//   a server in use   a server whose launcher is running: refuse to start a second server
import { execFile } from 'node:child_process'
import { readFile, readlink, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { EmbeddedPostgresError } from './embedded-error.ts'

const stopWaitMs = 10_000

/** Puts the pid of the launcher on the server's command line, as a custom setting, which PostgreSQL accepts.
 * The pid is there before the server touches the folder, so a second start can always identify the launcher
 * of a running server. */
export function launcherArgs(): string[] {
  return ['-c', `rouse.launcher=${process.pid}`]
}

export async function clearPreviousServer(dataDir: string): Promise<void> {
  const pid = await readPid(join(dataDir, 'postmaster.pid'))
  if (pid === undefined || !isAlive(pid)) return
  const server = await serverIn(dataDir, pid)
  if (server === undefined) {
    await rm(join(dataDir, 'postmaster.pid'), { force: true })
    return
  }
  // If the launcher has died, the server has another parent.
  if (server.parent === Number(/rouse\.launcher=(\d+)/.exec(server.command)?.[1])) {
    throw new EmbeddedPostgresError(
      'data_dir_in_use',
      `${dataDir} is in use by process ${server.parent}, which runs PostgreSQL there (process ${pid})`,
    )
  }
  await stopOrphan(pid)
}

async function stopOrphan(pid: number): Promise<void> {
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    process.kill(pid, signal)
    for (let waitedMs = 0; waitedMs < stopWaitMs; waitedMs += 20) {
      if (!isAlive(pid)) return
      await delay(20)
    }
  }
}

async function readPid(file: string): Promise<number | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '')
  const pid = Number.parseInt(text, 10)
  return pid > 0 ? pid : undefined
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** The process if it is a PostgreSQL on this folder, else undefined. */
async function serverIn(dataDir: string, pid: number): Promise<ProcessInfo | undefined> {
  const info = process.platform === 'linux' ? await fromProc(pid) : await fromPs(pid)
  if (info === undefined || !info.command.includes('postgres')) return undefined
  return info.command.includes(dataDir) || info.folder === dataDir ? info : undefined
}

interface ProcessInfo {
  readonly parent: number
  readonly command: string
  readonly folder: string | undefined
}

async function fromProc(pid: number): Promise<ProcessInfo | undefined> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8')
    const folder = await readlink(`/proc/${pid}/cwd`).catch(() => undefined)
    return { parent: Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]), command, folder }
  } catch {
    return undefined
  }
}

async function fromPs(pid: number): Promise<ProcessInfo | undefined> {
  try {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'ppid=,command=', '-p', String(pid)])
    return { parent: Number.parseInt(stdout, 10), command: stdout, folder: undefined }
  } catch {
    return undefined
  }
}
