// Pushes a message inside your own PostgreSQL transaction, here with Kysely: the message is delivered only if the
// transaction commits. Run this program with the URLs of a node and of its database.
import { Rouse } from '@rouse/client'
import { fromKysely } from '@rouse/client/sql'
import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'

interface Queues {
  welcome: { user: string }
}

interface Tables {
  users: { name: string }
}

const [nodeUrl = '', connectionString] = process.argv.slice(2)
const rouse = new Rouse<Queues>({ urls: nodeUrl })
const pool = new pg.Pool({ connectionString })
const database = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
await sql`create table if not exists users (name text primary key)`.execute(database)

async function signUp(user: string): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    await transaction.insertInto('users').values({ name: user }).execute()
    await rouse.queue('welcome').pushIn(fromKysely(transaction), { user })
    if (user === 'mallory') throw new Error('not welcome') // rolls back, and nothing is pushed
  })
}

await signUp('mallory').catch(() => {})
await signUp('ann')

// The welcome is recorded and the message acknowledged in one transaction, too.
await new Promise<void>((resolve) => {
  rouse.queue('welcome').work(async ({ data }, context) => {
    await database.transaction().execute(async (transaction) => {
      await transaction.deleteFrom('users').where('name', '=', data.user).execute()
      await context.ackIn(fromKysely(transaction))
    })
    console.log(`welcome, ${data.user}`)
    resolve()
  })
})
await rouse.close()
await database.destroy()
