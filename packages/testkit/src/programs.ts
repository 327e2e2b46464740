// Finds programs of the system that some tests need.
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Debian installs servers in folders that are only in root's PATH. */
const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']

/** The path of an installed program. */
export function programPath(name: string): string | undefined {
  return folders
    .map((folder) => join(folder, name))
    .find((path) => path.startsWith('/') && existsSync(path))
}

/** For the `skip` of a test: false if the program is installed, else the reason. */
export function programMissing(name: string, debianPackage = name): string | false {
  if (programPath(name) !== undefined) return false
  return `${name} is not installed (Debian: apt-get install ${debianPackage})`
}
