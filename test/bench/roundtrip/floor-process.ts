// A process that does one thing and nothing else: serves HTTP, runs a query, or returns IPC messages.
import Fastify from 'fastify'
import pg from 'pg'

export type FloorRole = 'http' | 'query' | 'ipc'

const [role, databaseUrl] = process.argv.slice(2)
process.once('disconnect', () => process.exit(0))
if (role === 'http') await serve()
else if (role === 'query') await query()
else process.on('message', (message) => process.send?.(message))
if (role === 'ipc') process.send?.('ready')

/** Parses a body like that of a push, and answers with a body like that of a push. */
async function serve(): Promise<void> {
  const server = Fastify()
  const answer = {
    type: 'object',
    properties: { id: { type: 'string' }, status: { type: 'string' } },
  }
  server.post('/', { schema: { response: { 201: answer } } }, (_request, reply) => {
    void reply.code(201).send({ id: '019a0000-0000-7000-8000-000000000000', status: 'queued' })
  })
  process.send?.(await server.listen({ host: '127.0.0.1', port: 0 }))
}

/** Inserts a row of 200 bytes in a durable transaction, for each message from the parent. */
async function query(): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  await client.query('create table if not exists floor (id bigserial primary key, payload text)')
  const statement = { name: 'floor', text: 'insert into floor (payload) values ($1) returning id' }
  process.on('message', (payload: string) => {
    void client.query({ ...statement, values: [payload] }).then(() => process.send?.('done'))
  })
  process.send?.('ready')
}
