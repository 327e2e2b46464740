import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Returns the path of the nodes' shared secret, readable by the owner only. The first start creates it. */
export async function gossipSecret(dataDir: string): Promise<string> {
  const path = join(dataDir, 'gossip-secret')
  const secret = randomBytes(32).toString('base64url')
  await writeFile(path, `${secret}\n`, { flag: 'wx', mode: 0o600 }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  })
  return path
}
