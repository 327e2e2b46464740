import type { DatabaseFigures } from '@rouse/storage'
import type { Exposition } from './exposition.ts'

/** The same on every node. */
export function writeDatabaseMetrics(out: Exposition, database: DatabaseFigures): void {
  const { tables } = database
  out
    .family('rouse_database_connections', 'gauge', 'Connections of all users to the server')
    .sample(database.connections)
  out
    .family('rouse_database_connections_limit', 'gauge', 'max_connections of the server')
    .sample(database.connectionsMax)
  out
    .family(
      'rouse_database_oldest_xmin_transactions',
      'gauge',
      'Transactions since the oldest snapshot in use, as far as this user may see; VACUUM keeps newer dead rows',
    )
    .sample(database.oldestXminAge)
  out
    .family(
      'rouse_database_oldest_transaction_seconds',
      'gauge',
      'Age of the oldest open transaction, as far as this user may see',
    )
    .sample(database.oldestTransactionSeconds)
  const rows = out.family('rouse_table_rows', 'gauge', 'Estimated rows, by table')
  for (const { table, liveRows, deadRows } of tables) {
    rows.sample(liveRows, { table, state: 'live' }).sample(deadRows, { table, state: 'dead' })
  }
  const bytes = out.family('rouse_table_size_bytes', 'gauge', 'Size with indexes, by table')
  for (const { table, bytes: size } of tables) bytes.sample(size, { table })
  out
    .family('rouse_retention_lag_seconds', 'gauge', 'How long jobs of retention are overdue')
    .samples(database.retentionLagSeconds, 'job')
}
