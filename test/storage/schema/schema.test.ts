// The whole schema, and how the migration files bring any database to it.
import { randomUUID } from 'node:crypto'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migrate, migrationsDirectory, readMigrationFiles } from '@rouse/database'
import { ack, type NewMessage, pop, push } from '@rouse/storage'
import { testDatabase } from '@rouse/testkit'
import type pg from 'pg'
import { type Test, test } from 'tap'

const dumpQuery = readFileSync(
  fileURLToPath(new URL('../../../scripts/dump-schema.sql', import.meta.url)),
  'utf8',
)
const snapshot = readFileSync(join(migrationsDirectory, 'schema.snapshot.txt'), 'utf8')

test('the schema equals its snapshot (to accept a change: npm run schema:snapshot)', async (t) => {
  const { pool } = await testDatabase(t, { instrumented: false })
  t.equal(await dumpSchema(pool), snapshot)
})

test('nodes that migrate an empty database at once apply every file once', async (t) => {
  const { pool, url } = await emptyDatabase(t)
  const results = await Promise.all(Array.from({ length: 6 }, () => migrate({ url })))
  const files = await readMigrationFiles()
  t.same(
    results.flatMap(({ applied }) => applied).sort(),
    files.migrations.map(({ name }) => name),
  )
  t.same(
    results.flatMap(({ functions }) => functions),
    files.functions?.files.map(({ name }) => name),
  )
  t.equal(await dumpSchema(pool), snapshot)
})

test('a node that starts on a migrated database changes nothing', async (t) => {
  const { pool, url } = await testDatabase(t, { instrumented: false })
  t.same(await migrate({ url }), { applied: [], functions: [] })
  t.equal(await dumpSchema(pool), snapshot)
})

test('applying functions again changes neither schema nor data', async (t) => {
  const { pool, url } = await testDatabase(t, { instrumented: false })
  const item = makeItem()
  await push(pool, [item])
  const { functions } = await migrate({ url, directory: await nextRelease(t) })
  t.ok(functions.length > 0, 'they were applied again')
  t.equal(await dumpSchema(pool), snapshot)
  t.equal(await consumeOne(pool), item.id)
})

test('a session in use survives an upgrade of the functions', async (t) => {
  const { pool, url } = await testDatabase(t, { instrumented: false })
  const client = await pool.connect()
  t.teardown(() => client.release())
  const before = makeItem()
  await push(client, [before])
  t.equal(await consumeOne(client), before.id, 'before, which prepares the statements')
  await migrate({ url, directory: await nextRelease(t) })
  const after = makeItem()
  await push(client, [after])
  t.equal(await consumeOne(client), after.id, 'after')
})

test('an older node does not replace the functions of a newer one, and works with them', async (t) => {
  const { pool, url } = await testDatabase(t, { instrumented: false })
  const directory = await nextRelease(t, {
    'functions/release_name.sql': `-- For this test.
      create or replace function rouse.release_name() returns text language sql as $$ select 'next' $$;`,
  })
  await migrate({ url, directory })
  t.same(await migrate({ url }), { applied: [], functions: [] })
  const { rows } = await pool.query('select rouse.release_name()')
  t.same(rows, [{ release_name: 'next' }])
  const item = makeItem()
  await push(pool, [item])
  t.equal(await consumeOne(pool), item.id)
})

test('callers of the only enqueue of an earlier release work after an upgrade', async (t) => {
  const { pool, url } = await testDatabase(t, { instrumented: false })
  const role = `rouse_shop_${randomUUID().slice(0, 8)}`
  // As before the migration that added parameters; that release had enqueue_v1 under the name enqueue.
  await pool.query(`
    do $$
    declare f regprocedure;
    begin
      for f in select p.oid from pg_proc p where p.pronamespace = 'rouse'::regnamespace and p.proname = 'enqueue' loop
        execute 'drop function ' || f;
      end loop;
    end $$;
    drop function rouse.enqueue_v1(text, text, text, interval, timestamptz, text, json, text);
    drop function rouse.enqueue_v1(text, jsonb, text, interval, timestamptz, text, jsonb, text);
    alter function rouse.enqueue_v1(text, json, text, interval, timestamptz, text, json, text) rename to enqueue;
    create view sending as select rouse.enqueue('q', '"view"'::json);
    create function send() returns uuid language sql begin atomic select rouse.enqueue('q', '"function"'); end;
    create role ${role};
    grant usage on schema rouse to ${role};
    grant execute on function rouse.enqueue(text, json, text, interval, timestamptz, text, json, text) to ${role};
  `)
  t.teardown(() => pool.query(`drop owned by ${role}; drop role ${role}`))
  const directory = await nextRelease(t)
  await pool.query(readFileSync(join(directory, '0025_enqueue_options.sql'), 'utf8'))
  await migrate({ url, directory })
  t.equal(await dumpSchema(pool), snapshot)
  await pool.query(`select * from sending; select send()`)
  await pool.query(`
    begin;
    set local role ${role};
    select rouse.enqueue('q', '"literal"');
    select rouse.enqueue('q', to_jsonb('jsonb'::text));
    commit`)
  const { rows } = await pool.query('select payload from rouse.scheduled order by id')
  t.same(
    rows.map(({ payload }) => payload),
    ['"view"', '"function"', '"literal"', '"jsonb"'],
  )
})

test('a release that adds a migration refuses nodes of the one before', async (t) => {
  const { url } = await testDatabase(t, { instrumented: false })
  const { migrations } = await readMigrationFiles()
  const number = String((migrations.at(-1)?.version ?? 0) + 1).padStart(4, '0')
  const name = `${number}_more.sql`
  const directory = await nextRelease(t, { [name]: 'create table rouse.more (id int);' })
  t.same((await migrate({ url, directory })).applied, [name])
  await t.rejects(migrate({ url }), { code: 'schema_newer' })
})

async function dumpSchema(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ line: string }>(dumpQuery)
  return rows.map(({ line }) => `${line}\n`).join('')
}

async function emptyDatabase(t: Test): Promise<{ pool: pg.Pool; url: string }> {
  const { pool, url } = await testDatabase(t, { instrumented: false })
  await pool.query('drop schema rouse cascade')
  return { pool, url }
}

/** Copies the folder of migrations, with the next VERSION of the functions and additional files. */
async function nextRelease(t: Test, files: Readonly<Record<string, string>> = {}): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'rouse-next-release-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  cpSync(migrationsDirectory, directory, { recursive: true })
  const { functions } = await readMigrationFiles()
  const version = `${(functions?.version ?? 0) + 1}\n`
  for (const [name, text] of Object.entries({ 'functions/VERSION': version, ...files })) {
    writeFileSync(join(directory, name), text)
  }
  return directory
}

function makeItem(): NewMessage {
  return { queue: 'orders', partition: 'Default', id: randomUUID(), payload: '{}' }
}

/** Pops and acknowledges the next message; returns its id. */
async function consumeOne(executor: pg.Pool | pg.PoolClient): Promise<string | undefined> {
  const demands = [{ batch: 1, partitions: 1, holder: 'test' }]
  const { leases } = await pop(executor, { source: { queue: 'orders' }, group: 'g', demands })
  const [lease] = leases
  if (lease === undefined) return undefined
  await ack(executor, [{ leaseId: lease.leaseId }])
  return lease.messages[0]?.id
}
