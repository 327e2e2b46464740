import { test } from 'tap'
import { eventually, type PostgresServer, startPostgresPair } from '../src/index.ts'

/** Long, because every check opens a new connection, and the machine may be busy. */
const patience = { timeoutMs: 60_000 }

async function lines(server: PostgresServer): Promise<string[]> {
  const rows = await server.query<{ line: string }>('select line from log order by line')
  return rows.map(({ line }) => line)
}

async function readOnly(server: PostgresServer): Promise<boolean | undefined> {
  const [row] = await server.query<{ standby: boolean }>('select pg_is_in_recovery() as standby')
  return row?.standby
}

test('a standby takes over from a killed primary, and the old primary becomes its standby', async (t) => {
  const pair = await startPostgresPair({ synchronous: true })
  t.teardown(() => pair.stop())
  const [first, second] = [pair.primary, pair.standby]
  t.same([await readOnly(first), await readOnly(second)], [false, true])
  await first.query(`create table log (line text); insert into log values ('1 before')`)

  await first.kill()
  t.equal(first.running, false)
  await pair.promoteStandby()
  t.equal(pair.primary, second)
  await second.query(`insert into log values ('2 after')`)
  t.same(await lines(second), ['1 before', '2 after'])

  await pair.rebuildStandby()
  t.equal(await readOnly(first), true)
  t.same(await lines(first), ['1 before', '2 after'])
  const [row] = await second.query('select sync_state from pg_stat_replication')
  t.same(row, { sync_state: 'sync' })
})

test('a commit waits for a frozen synchronous standby', async (t) => {
  const pair = await startPostgresPair({ synchronous: true })
  t.teardown(() => pair.stop())
  await pair.primary.query('create table log (line text)')
  pair.standby.freeze()
  let committed = false
  const writing = pair.primary.query(`insert into log values ('kept')`).then(() => {
    committed = true
  })
  await eventually(async () => {
    const rows = await pair.primary.query(
      `select from pg_stat_activity where wait_event = 'SyncRep'`,
    )
    return rows.length === 1
  }, patience)
  t.equal(committed, false)
  pair.standby.thaw()
  await writing
  t.same(await lines(pair.primary), ['kept'])
})

test('an asynchronous primary does not wait for its standby, and restarts after a kill', async (t) => {
  const pair = await startPostgresPair()
  t.teardown(() => pair.stop())
  await pair.standby.kill()
  await pair.primary.query(`create table log (line text); insert into log values ('alone')`)
  await pair.primary.kill()
  await Promise.all([pair.primary.start(), pair.standby.start()])
  await pair.inSync()
  t.same(await lines(pair.standby), ['alone'])
})
