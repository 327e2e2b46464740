// Makes a fresh clone ready to run: installs with the pinned pnpm, then builds. Both steps are
// skipped when nothing changed: the install by a stamp in node_modules, the build by turbo.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root, runOrExit } from './run.mjs'

const stampFile = join(root, 'node_modules', '.rouse-install')

export async function setup() {
  await install()
  await runOrExit('turbo', ['run', 'build', '--output-logs=errors-only', '--log-order=grouped'])
  // Loaded only now, because it needs a package. It takes a tenth of a second.
  const { buildSite, siteFolder } = await import('./docs/site.mjs')
  buildSite(siteFolder)
}

async function install() {
  const fingerprint = installFingerprint()
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === fingerprint) return
  const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  await runOrExit('npx', ['--yes', packageManager, 'install', '--frozen-lockfile'], { CI: 'true' })
  writeFileSync(stampFile, fingerprint)
}

/** Everything that determines the result of an install, for this version of Node and this platform. */
function installFingerprint() {
  const hash = createHash('sha256').update(`${process.version} ${process.platform} ${process.arch}`)
  for (const file of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', ...manifests()]) {
    hash.update(file).update(readFileSync(join(root, file)))
  }
  return hash.digest('hex')
}

function manifests() {
  const members = ['apps', 'packages']
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) => readdirSync(join(root, folder)).map((name) => join(folder, name)))
  return ['.', 'test', ...members]
    .map((folder) => join(folder, 'package.json'))
    .filter((file) => existsSync(join(root, file)))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await setup()
