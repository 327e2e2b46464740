// Pushes a message inside your own PostgreSQL transaction: the message is delivered only if the transaction
// commits. Run this program with the URLs of a node and of its database.
import { Rouse } from '@rouse/client'
import pg from 'pg'

interface Queues {
  welcome: { user: string }
}

const [nodeUrl = '', databaseUrl] = process.argv.slice(2)
const rouse = new Rouse<Queues>({ urls: nodeUrl })
const database = new pg.Client({ connectionString: databaseUrl })
await database.connect()
await database.query('create table if not exists users (name text primary key)')

async function signUp(user: string, outcome: 'commit' | 'rollback'): Promise<void> {
  await database.query('begin')
  await database.query('insert into users values ($1)', [user])
  await rouse.queue('welcome').pushIn(database, { user })
  await database.query(outcome)
}

await signUp('mallory', 'rollback')
await signUp('ann', 'commit')
await database.end()

for await (const message of rouse.queue('welcome').messages()) {
  console.log(`welcome, ${message.data.user}`)
  await message.ack() // explicit, because the loop ends here
  break
}
await rouse.close()
