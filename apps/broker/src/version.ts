import { readFileSync } from 'node:fs'

const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')

/** Of this program, as other nodes are told. */
export const version = String((JSON.parse(manifest) as { version: unknown }).version)
