// The PostgreSQL versions that Rouse supports. Every program checks the version before it changes anything,
// because an older server would accept the schema and fail later, in a user's call.
import type pg from 'pg'
import { readServerVersion } from './version-statements.ts'

export const postgresMajorMin = 15

export interface ServerVersion {
  /** As `server_version_num`: 150018 is 15.18. */
  readonly number: number
  /** The readable version, with any suffix of a packager. */
  readonly name: string
}

/** The server is older than the oldest supported version. Callers branch on `code`. */
export class PostgresTooOldError extends Error {
  readonly code = 'postgres_too_old'

  constructor({ name }: ServerVersion) {
    super(
      `PostgreSQL ${name} is too old: Rouse needs ${postgresMajorMin} or newer (postgres_too_old)`,
    )
    this.name = 'PostgresTooOldError'
  }
}

/** Throws if the server is too old. */
export async function checkServerVersion(client: pg.ClientBase | pg.Pool): Promise<ServerVersion> {
  const version = await readServerVersion(client)
  if (isTooOld(version)) throw new PostgresTooOldError(version)
  return version
}

export function isTooOld({ number }: ServerVersion): boolean {
  return Math.floor(number / 10_000) < postgresMajorMin
}
