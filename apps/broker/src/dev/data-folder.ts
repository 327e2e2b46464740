import { mkdir, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DevError } from './dev-error.ts'
import { gossipSecret } from './gossip-secret.ts'

/** Creates the folder of a development cluster, checks that logs are writable, returns the secret's path. */
export async function makeDataFolder(path: string, logs: readonly string[]): Promise<string> {
  try {
    await makeFolder(path)
    for (const log of logs) await seeThatItCanBeWritten(log)
    return await gossipSecret(path)
  } catch (error) {
    const problem = `--data ${path} cannot be used: ${(error as Error).message}`
    throw new DevError('bad_folder', problem)
  }
}

/**
 * Creates the folder and its parents. `mkdir` with `recursive` does that too, but on Node 20 it loops forever
 * if a parent exists and rejects subfolders, as /proc does.
 */
async function makeFolder(path: string): Promise<void> {
  if (await isFolder(path)) return
  if (dirname(path) !== path) await makeFolder(dirname(path))
  await mkdir(path).catch(async (error: unknown) => {
    // Another process may have created it first.
    if (!(await isFolder(path))) throw error
  })
}

/** Accepts a log that does not exist yet: the first write creates it. */
async function seeThatItCanBeWritten(path: string): Promise<void> {
  const file = await open(path, 'r+').catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  })
  await file?.close()
}

async function isFolder(path: string): Promise<boolean> {
  const info = await stat(path).catch(() => undefined)
  return info?.isDirectory() === true
}
