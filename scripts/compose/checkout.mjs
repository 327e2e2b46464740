// What the compose test takes from this checkout: a copy of its files, with a `docker` that knows `docker compose` where only
// `docker-compose` is installed, and the commands of the documentation.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { root } from '../run.mjs'

/** Returns the folder. `bin` in it has a `docker` that knows `docker compose`, if only `docker-compose` is installed. */
export function copyCheckout(compose) {
  const folder = mkdtempSync(join(tmpdir(), 'rouse-compose-'))
  const listed = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const files = execFileSync('git', listed, { cwd: root, encoding: 'utf8' }).split('\0')
  for (const file of files.filter((name) => name !== '' && existsSync(join(root, name)))) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
  const program = join(folder, 'bin', 'docker')
  mkdirSync(dirname(program))
  const { PATH = '' } = process.env
  const docker = PATH.split(':')
    .map((path) => join(path, 'docker'))
    .find((path) => existsSync(path))
  const shift = `if [ "$1" = compose ]; then shift; exec ${compose.join(' ')} "$@"; fi\n`
  const isPlugIn = compose.length === 2
  writeFileSync(program, `#!/bin/sh\n${isPlugIn ? '' : shift}exec ${docker} "$@"\n`)
  chmodSync(program, 0o755)
  return folder
}

/** The blocks of a page that are marked `test compose`, each with the lines that it must print. */
export function composeBlocks(page) {
  const text = readFileSync(join(root, page), 'utf8')
  const fences = [...text.matchAll(/^```(\w*)[ ]*(.*)\n([\s\S]*?)^```$/gm)]
  return fences.flatMap(([, , note, code], i) => {
    if (note !== 'test compose') return []
    const [, language, , lines] = fences[i + 1] ?? []
    return [{ code, output: language === 'output' ? lines.split('\n').filter(Boolean) : [] }]
  })
}
