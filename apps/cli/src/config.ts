// The only file that reads the environment.
import { readFileSync } from 'node:fs'
import { CliError } from './cli-error.ts'

export interface GlobalOptions {
  readonly url?: string
  readonly json?: boolean
  /** An API key. */
  readonly token?: string
}

const localUrl = 'http://127.0.0.1:4600'

/** The URL of the node: `--url`, else ROUSE_URL. Not a default of the option, because help prints defaults. */
export function urlOf({ url }: GlobalOptions): string {
  return url ?? (process.env.ROUSE_URL || localUrl)
}

export const databaseUrl = process.env.ROUSE_DATABASE_URL || undefined
/** The login that owns the schema. */
export const migrateUrl = process.env.ROUSE_MIGRATE_URL || databaseUrl
export const listenUrl = process.env.ROUSE_LISTEN_URL || undefined

/** The API key: `--token`, else ROUSE_TOKEN, else the content of the file that ROUSE_TOKEN_FILE names. */
export function tokenOf({ token }: GlobalOptions): string | undefined {
  const { ROUSE_TOKEN, ROUSE_TOKEN_FILE } = process.env
  const given = token || ROUSE_TOKEN
  if (given) return given.trim()
  if (!ROUSE_TOKEN_FILE) return undefined
  try {
    return readFileSync(ROUSE_TOKEN_FILE, 'utf8').trim()
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code
    throw new CliError('usage', `cannot read ROUSE_TOKEN_FILE ${ROUSE_TOKEN_FILE} (${reason})`)
  }
}
