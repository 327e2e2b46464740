// Migrates once per server and per state of the migrations folder; tests clone the result.
import { createHash } from 'node:crypto'
import { createPool, migrate, migrationsDirectory, readMigrationFiles } from '@rouse/database'
import pg from 'pg'
import { activateBarriers, createBarriers, replaceClock } from './instrumentation.ts'

export interface TemplateOptions {
  readonly directory: string | undefined
  readonly instrumented: boolean
  readonly content: TemplateContent | undefined
}

/** Data that takes long to create; test files share a template with it. */
export interface TemplateContent {
  /** Part of the name of the template; another name for other data. */
  readonly name: string
  readonly create: (pool: pg.Pool) => Promise<void>
}

/** Raise this number when the instrumentation changes, so that no stale template is cloned. */
const instrumentationVersion = 1
const advisoryLockKey = 7_687_302

const ready = new Map<string, Promise<string>>()

/** The template's name. Determined once per process; the files do not change during a test. */
export function ensureTemplate(serverUrl: string, options: TemplateOptions): Promise<string> {
  const key = JSON.stringify([serverUrl, options])
  const known = ready.get(key) ?? findOrMakeTemplate(serverUrl, options)
  ready.set(key, known)
  return known
}

/** Parallel test files wait for the test file that creates the same template. */
async function findOrMakeTemplate(serverUrl: string, options: TemplateOptions): Promise<string> {
  const name = await templateName(options)
  const admin = new pg.Client({ connectionString: serverUrl, application_name: 'rouse template' })
  await admin.connect()
  try {
    await admin.query('select pg_advisory_lock($1, hashtext($2))', [advisoryLockKey, name])
    const { rowCount } = await admin.query('select from pg_database where datname = $1', [name])
    if (rowCount === 0) await makeTemplate(admin, serverUrl, name, options)
    return name
  } finally {
    await admin.end()
  }
}

/** Creates the template under another name and renames it, so a database with the final name is complete. */
async function makeTemplate(
  admin: pg.Client,
  serverUrl: string,
  name: string,
  options: TemplateOptions,
): Promise<void> {
  const draft = `${name}_draft`
  await admin.query(`drop database if exists ${draft} with (force)`)
  await admin.query(`create database ${draft}`)
  const url = databaseUrl(serverUrl, draft)
  const pool = createPool({ url, max: 1, applicationName: 'rouse template' })
  try {
    if (options.instrumented) await createBarriers(pool)
    await migrate({
      pool,
      ...(options.directory !== undefined && { directory: options.directory }),
      ...(options.instrumented && { transformFunction: activateBarriers }),
    })
    if (options.instrumented) await replaceClock(pool)
    await options.content?.create(pool)
  } finally {
    await pool.end()
  }
  await admin.query(`alter database ${draft} rename to ${name}`)
}

async function templateName(options: TemplateOptions): Promise<string> {
  const { directory, instrumented, content } = options
  const files = await readMigrationFiles(directory ?? migrationsDirectory)
  const hash = createHash('sha256')
  for (const { name, checksum } of files.migrations) hash.update(`${name} ${checksum}\n`)
  hash.update(`functions ${files.functions?.version} ${files.functions?.checksum}\n`)
  if (instrumented) hash.update(`instrumented ${instrumentationVersion}`)
  if (content !== undefined) hash.update(`content ${content.name}`)
  return `rouse_template_${hash.digest('hex').slice(0, 16)}`
}

export function databaseUrl(serverUrl: string, database: string): string {
  const url = new URL(serverUrl)
  url.pathname = `/${database}`
  return url.href
}
