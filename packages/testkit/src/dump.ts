// Copies a database with pg_dump and pg_restore, if they are installed. The embedded PostgreSQL lacks them.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { postgresMajors, postgresMissing } from './test-postgres.ts'

const programs = ['pg_dump', 'pg_restore'] as const

/**
 * The major version of pg_dump, if there are servers of that version: it cannot dump newer ones, and others
 * may not understand its output.
 */
export const dumpMajor = findMajor()

/** For the `skip` of a test: false if databases can be dumped, else the reason. */
export const dumpMissing: string | false =
  dumpMajor === undefined
    ? 'pg_dump 15 to 18 is not installed (Debian: apt-get install postgresql-client)'
    : postgresMissing(dumpMajor)

/** Both are addresses of databases. The second must exist and be empty. Throws if anything was not restored. */
export async function copyByDump(from: string, to: string): Promise<void> {
  const dump = spawn('pg_dump', ['--format=custom', '--dbname', from], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const restore = spawn('pg_restore', ['--no-owner', '--exit-on-error', '--dbname', to], {
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  const [dumped, restored] = [succeeded('pg_dump', dump), succeeded('pg_restore', restore)]
  await Promise.all([pipeline(dump.stdout, restore.stdin).catch(() => {}), dumped, restored])
}

async function succeeded(
  name: string,
  child: ReturnType<typeof spawn> & { readonly stderr: NodeJS.ReadableStream },
): Promise<void> {
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'close')])
  if (code !== 0) throw new Error(`${name} ended with ${code}: ${said}`)
}

function findMajor(): number | undefined {
  try {
    const majors = programs.map((program) => {
      const said = execFileSync(program, ['--version'], { encoding: 'utf8' })
      return Number(/ (\d+)[.\d]* ?/.exec(said)?.[1])
    })
    const [major] = majors
    return postgresMajors.find((known) => known === major && majors.every((one) => one === major))
  } catch {
    return undefined
  }
}
