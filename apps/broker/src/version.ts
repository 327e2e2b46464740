import { readFileSync } from 'node:fs'

const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')

/** The version of this program, as sent to other nodes. */
export const version = String((JSON.parse(manifest) as { version: unknown }).version)
