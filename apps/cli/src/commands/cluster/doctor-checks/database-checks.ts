import {
  isBehindPooler,
  isListenHeard,
  type Pool,
  readClockMs,
  readSetting,
  readSettingIfAny,
} from '@rouse/storage'
import { wallMs } from '../../../clock.ts'
import { checkLogin } from './access-checks.ts'
import { checkCopy } from './copy-check.ts'
import { checkServerDefaults, type NodeDefaults } from './defaults-check.ts'
import { type Finding, fine, problem, warning } from './finding.ts'
import { checkSession } from './session-checks.ts'

const skewMsMax = 1_000
const listenMsMax = 1_000

/** The settings that make a commit durable. */
const durability = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on' }

/** The queue defaults and the connection limit of a node. Undefined if an older node does not report them. */
export interface ConfiguredNode extends NodeDefaults {
  readonly connections: number | undefined
}

/** `listenUrl` is the address for LISTEN, if it differs from `url`. */
export async function checkDatabase(
  url: string | undefined,
  listenUrl: string | undefined,
  nodes: readonly ConfiguredNode[],
): Promise<Finding[]> {
  if (url === undefined) {
    const fix = 'set ROUSE_DATABASE_URL to check it'
    return [warning('database', 'the database was not checked', fix)]
  }
  const { createPool } = await import('@rouse/database')
  let pool: Pool | undefined
  try {
    pool = createPool({ url, max: 2, applicationName: 'rouse doctor' })
    const version = await checkVersion(pool)
    if (version.state === 'problem') return [version]
    return [
      version,
      ...(await checkSettings(pool)),
      ...(await checkLogin(pool)),
      ...(await checkSession(url)),
      ...(await checkConnections(pool, nodes)),
      await checkSchema(pool),
      ...(await checkCopy(pool)),
      ...(await checkServerDefaults(pool, nodes)),
      await checkPooler(pool),
      await checkListen(listenUrl ?? url),
      await checkClock(pool),
    ]
  } catch (error) {
    const fix = 'check the URL, whether PostgreSQL runs, and whether it allows the login'
    return [problem('database', `PostgreSQL does not answer: ${(error as Error).message}`, fix)]
  } finally {
    await pool?.end()
  }
}

async function checkVersion(pool: Pool): Promise<Finding> {
  const { checkServerVersion, PostgresTooOldError } = await import('@rouse/database')
  try {
    const { name } = await checkServerVersion(pool)
    return fine('version', `PostgreSQL ${name}`)
  } catch (error) {
    if (!(error instanceof PostgresTooOldError)) throw error
    return problem('version', error.message, 'use PostgreSQL 15, 16, 17 or 18', error.code)
  }
}

async function checkSettings(pool: Pool): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const [name, wanted] of Object.entries(durability)) {
    const value = await readSetting(pool, name)
    const isSafe = value === wanted || (name === 'synchronous_commit' && value.startsWith('remote'))
    if (!isSafe) {
      findings.push(
        problem(
          'durability',
          `${name} is ${value}: a crash may lose messages`,
          `alter system set ${name} = ${wanted}`,
        ),
      )
    }
  }
  if (findings.length === 0) findings.push(fine('durability', 'commits are durable'))
  if ((await readSetting(pool, 'autovacuum')) !== 'on') {
    findings.push(
      problem(
        'autovacuum',
        'autovacuum is off: tables will grow without limit',
        'alter system set autovacuum = on',
      ),
    )
  }
  return findings
}

/** Checks that the server allows the connections of all nodes, beside those reserved for administrators. */
async function checkConnections(pool: Pool, nodes: readonly ConfiguredNode[]): Promise<Finding[]> {
  const wants = nodes.flatMap(({ connections }) => (connections === undefined ? [] : [connections]))
  if (wants.length === 0) return []
  const max = Number(await readSetting(pool, 'max_connections'))
  const reserved =
    Number(await readSetting(pool, 'superuser_reserved_connections')) +
    Number(await readSettingIfAny(pool, 'reserved_connections'))
  const wanted = wants.reduce((sum, connections) => sum + connections, 0)
  const room = max - reserved
  const sums = wants.length === 1 ? `${wanted}` : `${wants.join(' + ')} = ${wanted}`
  if (wanted <= room) {
    return [fine('connections', `the nodes use up to ${sums} of ${room} connections`)]
  }
  const each = Math.floor(room / wants.length)
  return [
    warning(
      'connections',
      `the nodes may open ${sums} connections, but PostgreSQL has ${room} (max_connections ${max}, ${reserved} reserved)`,
      `alter system set max_connections = ${wanted + reserved} and restart PostgreSQL, or ROUSE_CONNECTIONS_MAX=${each} on each node`,
    ),
  ]
}

async function checkSchema(pool: Pool): Promise<Finding> {
  const { migrate } = await import('@rouse/database')
  try {
    const { applied, functions } = await migrate({ pool, dryRun: true })
    if (applied.length + functions.length === 0) return fine('schema', 'the schema is up to date')
    return warning(
      'schema',
      `${applied.length} migrations and ${functions.length} function files are missing`,
      'rouse migrate',
    )
  } catch (error) {
    return problem(
      'schema',
      (error as Error).message,
      'upgrade this program, or find out what changed the schema',
    )
  }
}

async function checkPooler(pool: Pool): Promise<Finding> {
  if (!(await isBehindPooler(pool))) return fine('pooler', 'no pooler')
  return fine('pooler', 'behind a pooler: statements are not prepared by name')
}

async function checkListen(url: string): Promise<Finding> {
  const fix = 'set ROUSE_LISTEN_URL to the address of PostgreSQL itself, or set ROUSE_NOTIFY=off'
  const { createPool } = await import('@rouse/database')
  let pool: Pool | undefined
  try {
    pool = createPool({ url, max: 1, applicationName: 'rouse doctor' })
    if (await isBehindPooler(pool)) {
      return warning(
        'listen',
        'nodes would LISTEN through a pooler, which does not forward notifications',
        fix,
      )
    }
    if (await isListenHeard(pool, listenMsMax)) return fine('listen', 'LISTEN works')
    return warning('listen', 'LISTEN receives no notifications', fix)
  } catch (error) {
    return problem('listen', `LISTEN failed: ${(error as Error).message}`, fix)
  } finally {
    await pool?.end()
  }
}

async function checkClock(pool: Pool): Promise<Finding> {
  const before = wallMs()
  const databaseMs = await readClockMs(pool)
  const skewMs = Math.round(databaseMs - (before + wallMs()) / 2)
  if (Math.abs(skewMs) <= skewMsMax) {
    return fine('clock', 'this machine and the database agree on the time')
  }
  const fix = 'run a time service (chrony, ntpd)'
  return warning(
    'clock',
    `the clock of this machine differs by ${skewMs} ms from the database`,
    fix,
  )
}
