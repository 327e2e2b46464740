import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { createPool, type MigrationWait, migrate, readMigrationFiles } from '../../src/index.ts'
import { migrationsFolder } from '../support/migrations-folder.ts'
import { emptyDatabase } from '../support/server.ts'

const answer = (value: number): string =>
  `create or replace function rouse.answer() returns int language sql as 'select ${value}';`

const twoMigrations = {
  '0001_things.sql': 'create table rouse.things (id int);',
  '0002_more.sql': 'alter table rouse.things add name text;',
  'functions/VERSION': '1\n',
  'functions/answer.sql': answer(1),
}

test('an empty database gets every migration and the functions once', async (t) => {
  const { url } = await emptyDatabase(t)
  const directory = migrationsFolder(t, twoMigrations)
  const lines: string[] = []
  t.same(await migrate({ url, directory, log: (line) => lines.push(line) }), {
    applied: ['0001_things.sql', '0002_more.sql'],
    functions: ['answer.sql'],
  })
  t.equal(lines.length, 3)
  t.same(await migrate({ url, directory }), { applied: [], functions: [] })
})

test('a dry run reports what it would apply and changes nothing', async (t) => {
  const { pool } = await emptyDatabase(t)
  const directory = migrationsFolder(t, twoMigrations)
  t.same(await migrate({ pool, directory, dryRun: true }), {
    applied: ['0001_things.sql', '0002_more.sql'],
    functions: ['answer.sql'],
  })
  t.same((await pool.query(`select to_regnamespace('rouse') as found`)).rows, [{ found: null }])
})

test('a target version stops there and leaves the functions for later', async (t) => {
  const { pool } = await emptyDatabase(t)
  const directory = migrationsFolder(t, twoMigrations)
  t.same(await migrate({ pool, directory, version: 1 }), {
    applied: ['0001_things.sql'],
    functions: [],
  })
  t.same(await migrate({ pool, directory }), {
    applied: ['0002_more.sql'],
    functions: ['answer.sql'],
  })
})

test('many nodes that start at once apply everything exactly once', async (t) => {
  const { url } = await emptyDatabase(t)
  const directory = migrationsFolder(t, twoMigrations)
  const results = await Promise.all([1, 2, 3, 4, 5, 6].map(() => migrate({ url, directory })))
  t.same(results.flatMap(({ applied }) => applied).sort(), ['0001_things.sql', '0002_more.sql'])
  t.same(
    results.flatMap(({ functions }) => functions),
    ['answer.sql'],
  )
})

test('an edited migration is refused', async (t) => {
  const { pool } = await emptyDatabase(t)
  const directory = migrationsFolder(t, twoMigrations)
  await migrate({ pool, directory })
  writeFileSync(join(directory, '0001_things.sql'), 'create table rouse.other ();')
  await t.rejects(migrate({ pool, directory }), {
    code: 'migration_changed',
    message: /0001_things\.sql/,
  })
})

test('a change of line endings does not count as an edit', async (t) => {
  const { pool } = await emptyDatabase(t)
  const directory = migrationsFolder(t, { '0001_things.sql': 'select 1;\nselect 2;\n' })
  await migrate({ pool, directory })
  writeFileSync(join(directory, '0001_things.sql'), 'select 1;\r\nselect 2;\r\n')
  t.same(await migrate({ pool, directory }), { applied: [], functions: [] })
})

test('a newer schema, a missing file and a late file are refused by name', async (t) => {
  const { pool } = await emptyDatabase(t)
  const directory = migrationsFolder(t, { ...twoMigrations, '0004_last.sql': 'select 1;' })
  await migrate({ pool, directory })
  writeFileSync(join(directory, '0003_late.sql'), 'select 1;')
  await t.rejects(migrate({ pool, directory }), { code: 'migration_out_of_order' })
  rmSync(join(directory, '0003_late.sql'))
  rmSync(join(directory, '0001_things.sql'))
  await t.rejects(migrate({ pool, directory }), { code: 'migration_missing' })
  const older = migrationsFolder(t, twoMigrations)
  await t.rejects(migrate({ pool, directory: older }), { code: 'schema_newer' })
})

test('a migration that fails leaves nothing behind and names its line', async (t) => {
  const { pool } = await emptyDatabase(t)
  const directory = migrationsFolder(t, {
    '0001_good.sql': 'create table rouse.good ();',
    '0002_bad.sql': 'create table rouse.half ();\nselect nonsense;',
  })
  await t.rejects(migrate({ pool, directory }), {
    code: 'migration_failed',
    message: /^0002_bad\.sql:2: .*nonsense/,
  })
  const { rows } = await pool.query(
    `select to_regclass('rouse.good') is not null as good, to_regclass('rouse.half') as half`,
  )
  t.same(rows, [{ good: true, half: null }])
})

test('changed functions are applied again as a whole', async (t) => {
  const { pool } = await emptyDatabase(t)
  const directory = migrationsFolder(t, twoMigrations)
  await migrate({ pool, directory })
  writeFileSync(join(directory, 'functions/answer.sql'), answer(2))
  t.same((await migrate({ pool, directory })).functions, ['answer.sql'])
  t.same((await pool.query('select rouse.answer() as n')).rows, [{ n: 2 }])
})

test('an older node does not replace newer functions', async (t) => {
  const { pool } = await emptyDatabase(t)
  const older = migrationsFolder(t, twoMigrations)
  const newer = migrationsFolder(t, {
    ...twoMigrations,
    'functions/VERSION': '2',
    'functions/answer.sql': answer(2),
  })
  await migrate({ pool, directory: newer })
  t.same((await migrate({ pool, directory: older })).functions, [])
  t.same((await pool.query('select rouse.answer() as n')).rows, [{ n: 2 }])
})

test('functions may call each other in any file order', async (t) => {
  const { pool } = await emptyDatabase(t)
  const directory = migrationsFolder(t, {
    'functions/VERSION': '1',
    'functions/a.sql': `create or replace function rouse.a() returns int language sql as 'select rouse.b()';`,
    'functions/b.sql': `create or replace function rouse.b() returns int language sql as 'select 1';`,
  })
  t.same((await migrate({ pool, directory })).functions, ['a.sql', 'b.sql'])
})

test('grants are applied after all functions, whatever the files and folders are called', async (t) => {
  const { pool } = await emptyDatabase(t)
  const directory = migrationsFolder(t, {
    'functions/VERSION': '1',
    'functions/grants.sql': 'revoke execute on all functions in schema rouse from public;',
    'functions/zones/late.sql': `create or replace function rouse.late() returns int language sql as 'select 1';`,
    'functions/zz_last.sql': `create or replace function rouse.last() returns int language sql as 'select 1';`,
  })
  t.same((await migrate({ pool, directory })).functions, [
    'zones/late.sql',
    'zz_last.sql',
    'grants.sql',
  ])
  const { rows } = await pool.query(
    `select proname from pg_proc where pronamespace = 'rouse'::regnamespace and has_function_privilege('public', oid, 'execute')`,
  )
  t.same(rows, [], 'no function is left to everybody')
})

test('a function with an invalid body is refused with its file name', async (t) => {
  const { pool } = await emptyDatabase(t)
  const directory = migrationsFolder(t, {
    'functions/VERSION': '1',
    'functions/a.sql': `create or replace function rouse.a() returns int language sql as 'select rouse.b()';`,
  })
  await t.rejects(migrate({ pool, directory }), {
    code: 'migration_failed',
    message: /^functions\/a\.sql.*rouse\.b/,
  })
})

test('functions without a version are refused', async (t) => {
  const { pool } = await emptyDatabase(t)
  const directory = migrationsFolder(t, { 'functions/answer.sql': answer(1) })
  await t.rejects(migrate({ pool, directory }), { code: 'functions_version_missing' })
})

test('a badly named file and a duplicate number are refused', async (t) => {
  const { pool } = await emptyDatabase(t)
  const unnamed = migrationsFolder(t, { 'first.sql': '' })
  await t.rejects(migrate({ pool, directory: unnamed }), { code: 'bad_migration_name' })
  const twins = migrationsFolder(t, { '0001_a.sql': '', '0001_b.sql': '' })
  await t.rejects(migrate({ pool, directory: twins }), { code: 'bad_migration_name' })
})

test('a migration waits for a lock, reports its holder, and then succeeds', async (t) => {
  const { pool } = await emptyDatabase(t)
  const directory = migrationsFolder(t, twoMigrations)
  await migrate({ pool, directory, version: 1 })
  const holder = await pool.connect()
  await holder.query(`set application_name = 'holder'; begin; lock table rouse.things`)
  const { rows } = await holder.query('select pg_backend_pid() as pid')
  const waits: MigrationWait[] = []
  let told: (() => void) | undefined
  const waited = new Promise<void>((resolve) => {
    told = resolve
  })
  const migrating = migrate({
    pool,
    directory,
    onWait(wait) {
      waits.push(wait)
      told?.()
    },
  })
  await waited
  t.match(waits[0], {
    what: '0002_more.sql',
    waitsFor: 'rouse.things',
    holders: [{ pid: rows[0].pid, application: 'holder', state: 'idle in transaction' }],
  })
  // The migration does not hold the lock between two tries, so other sessions can continue.
  await holder.query('commit')
  holder.release()
  t.same((await migrating).applied, ['0002_more.sql'])
})

test('a migration stops waiting for a lock after its patience or an abort', async (t) => {
  const { pool } = await emptyDatabase(t)
  const directory = migrationsFolder(t, twoMigrations)
  await migrate({ pool, directory, version: 1 })
  const holder = await pool.connect()
  t.teardown(() => holder.release(true))
  await holder.query('begin; lock table rouse.things')
  await t.rejects(migrate({ pool, directory, patienceMs: 0 }), {
    code: 'migration_failed',
    message: /^0002_more\.sql: .*lock timeout/,
  })
  const stopping = new AbortController()
  const migrating = migrate({
    pool,
    directory,
    signal: stopping.signal,
    onWait: () => stopping.abort(),
  })
  await t.rejects(migrating, { name: 'AbortError' })
})

test('an older release starts on a newer schema that names it, and changes nothing', async (t) => {
  const { pool } = await emptyDatabase(t)
  const older = migrationsFolder(t, twoMigrations)
  const newer = migrationsFolder(t, {
    ...twoMigrations,
    '0003_newer.sql': '-- A column more.\n-- works-with: 1\nalter table rouse.things add more int;',
    'functions/VERSION': '2',
    'functions/answer.sql': answer(2),
  })
  await migrate({ pool, directory: newer })
  t.same(await migrate({ pool, directory: older }), { applied: [], functions: [] })
  t.same(await migrate({ pool, directory: older, dryRun: true }), { applied: [], functions: [] })
  t.same((await pool.query('select rouse.answer() as n')).rows, [{ n: 2 }])
})

test('a newer schema that does not name our release is refused', async (t) => {
  const older = migrationsFolder(t, twoMigrations)
  for (const [head, version, reason] of [
    ['-- works-with: 2', '2', /0003_newer\.sql, which works with release 2 .*this is release 1/],
    ['-- nothing', '2', /0003_newer\.sql, which names no older release that works with it/],
    ['-- works-with: 1', '3', /functions of release 3, .*this is release 1/],
  ] as const) {
    const { pool } = await emptyDatabase(t)
    const newer = migrationsFolder(t, {
      ...twoMigrations,
      '0003_newer.sql': `${head}\nselect 1;`,
      'functions/VERSION': version,
    })
    await migrate({ pool, directory: newer })
    const refused = { code: 'schema_newer', message: reason }
    await t.rejects(migrate({ pool, directory: older }), refused)
    await t.rejects(migrate({ pool, directory: older, dryRun: true }), refused)
  }
})

test('a database from an earlier runner gets the column for compatible releases', async (t) => {
  const { pool } = await emptyDatabase(t)
  const directory = migrationsFolder(t, { ...twoMigrations, '0003_c.sql': '-- works-with: 1' })
  await migrate({ pool, directory, version: 2 })
  await pool.query('alter table rouse.migrations drop works_with')
  t.same((await migrate({ pool, directory, dryRun: true })).applied, ['0003_c.sql'])
  await migrate({ pool, directory })
  const { rows } = await pool.query('select works_with from rouse.migrations order by version')
  t.same(rows, [{ works_with: null }, { works_with: null }, { works_with: 1 }])
})

/** Migrations up to this number are older than the `works-with` line, and migrations are never edited. */
const lastUnnamed = 8

test('every migration names the oldest release that works with it', async (t) => {
  const { migrations, functions } = await readMigrationFiles()
  for (const { name, version, worksWith } of migrations) {
    if (version <= lastUnnamed) continue
    t.ok(worksWith !== undefined && worksWith <= (functions?.version ?? 0), name)
  }
  t.ok(functions !== undefined && functions.version >= 2)
})

test('the settings of a step do not outlive it, as pgbouncer requires', async (t) => {
  const { url } = await emptyDatabase(t)
  const pool = createPool({ url, max: 1, applicationName: 'one' })
  t.teardown(() => pool.end())
  const before = (await pool.query('show lock_timeout')).rows
  await migrate({ pool, directory: migrationsFolder(t, twoMigrations) })
  t.same((await pool.query('show lock_timeout')).rows, before)
  t.equal((await pool.query(`select from pg_locks where locktype = 'advisory'`)).rowCount, 0)
})
