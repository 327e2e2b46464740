// A build of another commit in a temporary folder.
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface OtherBuild {
  readonly root: string
  remove(): Promise<void>
}

export async function buildCommit(root: string, commit: string): Promise<OtherBuild> {
  const hash = git(root, 'rev-parse', '--verify', '--end-of-options', `${commit}^{commit}`)
  const folder = await mkdtemp(join(tmpdir(), 'rouse-compare-'))
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true })
  try {
    git(root, 'clone', '--quiet', '--no-checkout', root, folder)
    git(folder, 'checkout', '--quiet', '--detach', hash)
    console.log(`building ${hash.slice(0, 9)}`)
    execFileSync('npm', ['run', '--silent', 'setup'], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  } catch (error) {
    await remove()
    throw error
  }
  return { root: folder, remove }
}

function git(folder: string, ...parameters: string[]): string {
  return execFileSync('git', parameters, { cwd: folder, encoding: 'utf8' }).trim()
}
