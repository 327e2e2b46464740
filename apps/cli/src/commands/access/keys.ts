// API keys. With ROUSE_DATABASE_URL the verbs speak SQL, so that the first key can be created before a node starts;
// otherwise they call a node. A new key is printed alone on standard output.
import type { createPool } from '@rouse/database'
import { type Command, Option } from 'commander'
import { type Api, type Json, segment } from '../../api.ts'
import { CliError } from '../../cli-error.ts'
import { wallMs } from '../../clock.ts'
import { databaseUrl } from '../../config.ts'
import { type ConfirmOptions, confirm, withConfirmation } from '../../confirm.ts'
import { count, durationMs, since } from '../../format.ts'
import type { Output } from '../../output.ts'
import { defaultVerb, sessionOf, verb } from '../../verb.ts'

const presets = ['producer', 'worker', 'viewer', 'operator', 'admin']
const graceMsDefault = 3_600_000
const keysMax = 20_000
/** The creator of keys by SQL, in the list of keys and in the audit log. */
const sqlPrincipal = 'rouse keys'
const undefinedSchema = '3F000'
const undefinedFunction = '42883'
const undefinedTable = '42P01'

interface CreateOptions {
  readonly preset?: string
  readonly queue?: string
  readonly grant?: readonly string[]
  readonly expiresIn?: number
  readonly requestsPerSecond?: number
  readonly bytesPerSecond?: number
  readonly waitingPops?: number
}

export function keysVerb(program: Command): void {
  const keys = verb(
    program,
    'keys',
    'list, create, rotate and revoke API keys',
    `rouse keys create shop --preset producer --queue 'orders-*'
rouse keys rotate ID --grace 1h
rouse keys revoke ID`,
  )
  defaultVerb(keys, 'list', 'list the keys, without their secrets', 'rouse keys list').action(
    (_options: object, command: Command) => list(command),
  )

  verb(keys, 'create <name>', 'create a key and print it', 'rouse keys create admin --preset admin')
    .addOption(new Option('--preset <preset>', 'a set of grants').choices(presets))
    .option('--queue <pattern>', 'limits the preset to a queue, or to a prefix such as orders-*')
    .option('--grant <grant...>', 'single grants, such as push:orders or pop:mail@sender')
    .option('--expires-in <duration>', 'the key ends after this time, such as 90d', durationMs)
    .option('--requests-per-second <count>', 'limit, divided among the live nodes', count)
    .option('--bytes-per-second <count>', 'limit of bodies and responses together', count)
    .option('--waiting-pops <count>', 'limit of pops that wait at once', count)
    .action(async (name: string, _options: object, command: Command) => {
      const { api, output, options } = sessionOf<CreateOptions>(command)
      const body = bodyOf(name, options)
      const made = await (databaseUrl === undefined ? createByHttp(api, body) : createBySql(body))
      printNew(output, made)
    })

  verb(
    keys,
    'rotate <id>',
    'replace a key by a new one with the same grants',
    'rouse keys rotate ID',
  )
    .option('--grace <duration>', 'how long the old key stays valid (default 1h)', durationMs)
    .action(async (id: string, _options: object, command: Command) => {
      const { api, output, options } = sessionOf<{ readonly grace?: number }>(command)
      const graceMs = options.grace ?? graceMsDefault
      const made = await (databaseUrl === undefined
        ? rotateByHttp(api, id, graceMs)
        : rotateBySql(id, graceMs))
      printNew(output, made)
    })

  withConfirmation(verb(keys, 'revoke', 'end a key at once', 'rouse keys revoke ID'))
    .argument('<id>')
    .action(async (id: string, _options: ConfirmOptions, command: Command) => {
      const { api, output, options } = sessionOf<ConfirmOptions>(command)
      const where = databaseUrl === undefined ? api.url : 'the database of ROUSE_DATABASE_URL'
      await confirm(`revoke the API key "${id}"`, { url: where }, options)
      if (databaseUrl === undefined) await api.delete(`/api/v1/keys/${segment(id)}`)
      else await revokeBySql(id)
      if (!output.isHuman) return output.json({ id, revoked: true })
      output.line(`${id}: revoked; its open requests end within ten seconds`)
    })

  verb(
    keys,
    'generate',
    'print a new key without storing it',
    'rouse keys generate > admin-key',
  ).action(async (_options: object, command: Command) => {
    const { randomBytes } = await import('node:crypto')
    const { newApiKey } = await import('@rouse/broker')
    const { output } = sessionOf(command)
    output.line(newApiKey(randomBytes).key)
  })
}

function bodyOf(name: string, options: CreateOptions): Json {
  const { preset, queue, grant, expiresIn, requestsPerSecond, bytesPerSecond, waitingPops } =
    options
  const limits = Object.entries({ requestsPerSecond, bytesPerSecond, waitingPops }).filter(
    ([, limit]) => limit !== undefined,
  )
  if (preset === undefined && grant === undefined) {
    throw new CliError('usage', 'no grants given: add --preset or --grant')
  }
  return {
    name,
    ...(preset === undefined ? {} : { preset }),
    ...(queue === undefined ? {} : { queue }),
    ...(grant === undefined ? {} : { grants: grant }),
    ...(limits.length === 0 ? {} : { limits: Object.fromEntries(limits) }),
    ...(expiresIn === undefined ? {} : { expiresAt: new Date(wallMs() + expiresIn).toISOString() }),
  }
}

async function list(command: Command): Promise<void> {
  const { api, output } = sessionOf(command)
  const keys: Json[] =
    databaseUrl === undefined ? (await api.get('/api/v1/keys')).body.keys : await listBySql()
  if (!output.isHuman) return output.json(keys)
  const nowMs = wallMs()
  output.table(
    keys,
    [
      { title: 'ID', value: ({ id }) => id },
      { title: 'NAME', value: ({ name }) => name, widthMin: 10 },
      { title: 'STATE', value: (key) => stateOf(key, nowMs) },
      { title: 'USED', value: ({ lastUsedDay }) => lastUsedDay, optional: true },
      {
        title: 'AGE',
        align: 'right',
        widthLeast: 6,
        value: ({ createdAt }) => since(createdAt, nowMs),
      },
      { title: 'GRANTS', value: ({ grants }) => grants.join(' '), widthMin: 15 },
    ],
    'no keys yet: rouse keys create admin --preset admin',
  )
}

function stateOf({ revokedAt, expiresAt }: Json, nowMs: number): string {
  if (revokedAt !== null) return 'revoked'
  if (expiresAt === null) return 'live'
  return Date.parse(expiresAt) <= nowMs ? 'expired' : `until ${expiresAt}`
}

/** The key alone, so that it can be redirected into a file. */
function printNew(output: Output, { id, name, grants, key }: Json): void {
  output.line(key)
  output.note(`${id} ${name}: ${grants.join(' ')}; the key is not shown again`)
}

async function createByHttp(api: Api, body: Json): Promise<Json> {
  return (await api.post('/api/v1/keys', body)).body
}

async function rotateByHttp(api: Api, id: string, graceMs: number): Promise<Json> {
  const body = { graceSeconds: Math.ceil(graceMs / 1_000) }
  return (await api.post(`/api/v1/keys/${segment(id)}/rotate`, body)).body
}

function createBySql(body: Json): Promise<Json> {
  return withDatabase(async (pool) => {
    const { issueKey, readKeyRequest } = await import('@rouse/broker')
    const issued = await issueKey(pool, readKeyRequest(body), sqlPrincipal)
    await record(pool, issued.id, {
      event: 'key created',
      name: issued.name,
      grants: issued.grants,
    })
    return issued
  })
}

function rotateBySql(id: string, graceMs: number): Promise<Json> {
  return withDatabase(async (pool) => {
    const { rotateKey } = await import('@rouse/broker')
    const how = { graceMs, createdBy: sqlPrincipal, nowMs: wallMs() }
    const issued = (await rotateKey(pool, id, how)) ?? noSuchKey(id)
    await record(pool, id, { event: 'key rotated', newKey: issued.id })
    return issued
  })
}

function revokeBySql(id: string): Promise<void> {
  return withDatabase(async (pool) => {
    const { revokeKey } = await import('@rouse/storage')
    if (!(await revokeKey(pool, id))) noSuchKey(id)
    await record(pool, id, { event: 'key revoked' })
  })
}

function listBySql(): Promise<Json[]> {
  return withDatabase(async (pool) => {
    const { listKeys } = await import('@rouse/storage')
    const keys = await listKeys(pool, keysMax)
    // As a node answers: times as text.
    return JSON.parse(JSON.stringify(keys)) as Json[]
  })
}

/** Who has the login to the database is not known here. */
async function record(pool: Pool, target: string, detail: Json): Promise<void> {
  const { writeAudit } = await import('@rouse/storage')
  const entry = { principal: sqlPrincipal, verb: 'admin', target, outcome: 'done', detail } as const
  await writeAudit(pool, sqlPrincipal, [entry])
}

function noSuchKey(id: string): never {
  throw new CliError('server', `there is no live API key "${id}" (not_found)`)
}

type Pool = ReturnType<typeof createPool>

async function withDatabase<Result>(call: (pool: Pool) => Promise<Result>): Promise<Result> {
  const database = await import('@rouse/database')
  const pool = database.createPool({
    url: databaseUrl ?? '',
    max: 1,
    applicationName: 'rouse keys',
  })
  try {
    return await call(pool)
  } catch (error) {
    if (error instanceof CliError) throw error
    const { code, message } = error as Error & { code?: string }
    const isMissing =
      code === undefinedSchema || code === undefinedFunction || code === undefinedTable
    throw new CliError('server', isMissing ? `${message}: run "rouse migrate" first` : message)
  } finally {
    await pool.end()
  }
}
