import { mkdir, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DevError } from './dev-error.ts'
import { gossipSecret } from './gossip-secret.ts'

/** Makes the folder of a development cluster, sees that the logs can be written, and answers the file of the secret. */
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
 * With what leads to it. Node 20 can do that itself, but goes round for ever where a folder is there and takes no other,
 * as in /proc.
 */
async function makeFolder(path: string): Promise<void> {
  if (await isFolder(path)) return
  if (dirname(path) !== path) await makeFolder(dirname(path))
  await mkdir(path).catch(async (error: unknown) => {
    // Somebody else may have been faster.
    if (!(await isFolder(path))) throw error
  })
}

/** One that is not there yet is made when there is something to write. */
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
