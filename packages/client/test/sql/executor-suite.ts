// What every executor must do, whatever the library: one suite, run by one file per library.

import { type Test, test } from 'tap'
import type { Message } from '../../src/index.ts'
import { ackIn, enqueueMany, pushIn, type SqlExecutor } from '../../src/sql/index.ts'
import { type Cluster, clientOf, sharedCluster, unique } from '../support/cluster.ts'

export interface Library {
  /**
   * Runs the work in a transaction of the library, on the executor and a function that runs plain SQL through
   * the same transaction. An error of the work rolls back and is thrown.
   */
  transaction<Result>(
    work: (executor: SqlExecutor, sql: (text: string) => Promise<unknown>) => Promise<Result>,
  ): Promise<Result>
  close(): Promise<unknown>
}

/** One node for all libraries of a file. */
const cluster = await sharedCluster()

export function runExecutorSuite(
  name: string,
  connect: (url: string) => Promise<Library> | Library,
): void {
  const open = async (t: Test): Promise<Library> => {
    const library = await connect(cluster.database.url)
    t.teardown(() => library.close())
    return library
  }

  test(`${name}: a push commits with the rows of its transaction`, async (t) => {
    const library = await open(t)
    const queue = clientOf(t, cluster.urls).queue(unique('orders'))
    await createOrders(cluster)
    const { id } = await library.transaction(async (executor, sql) => {
      await sql('insert into orders values (1)')
      return await queue.pushIn(
        executor,
        { text: `quotes ' " \\ and 100 % $1 ? ?? :name`, nested: { list: [1, null, 'ä'] } },
        {
          partition: `p ' ?`,
          dedupeKey: 'k',
          headers: { h: [1, 2] },
          traceId: 'trace',
          delay: '20ms',
        },
      )
    })
    const [message] = await queue.pop({ wait: '10s' })
    t.match(message, {
      id,
      data: { text: `quotes ' " \\ and 100 % $1 ? ?? :name`, nested: { list: [1, null, 'ä'] } },
      partition: `p ' ?`,
      transactionId: 'k',
      headers: { h: [1, 2] },
      traceId: 'trace',
    })
    t.equal(await countOrders(cluster), 1)
  })

  test(`${name}: a push is never delivered after a rollback`, async (t) => {
    const library = await open(t)
    const queue = clientOf(t, cluster.urls).queue(unique('orders'))
    await createOrders(cluster)
    const rolledBack = library.transaction(async (executor, sql) => {
      await sql('insert into orders values (1)')
      await queue.pushIn(executor, 'never')
      throw new Error('on purpose')
    })
    await t.rejects(rolledBack, { message: 'on purpose' })
    await library.transaction((executor) => queue.pushIn(executor, 'after'))
    t.match(await queue.pop({ wait: '10s', batch: 10 }), [{ data: 'after' }])
    t.equal(await countOrders(cluster), 0)
  })

  test(`${name}: many messages of several queues are stored in order`, async (t) => {
    const library = await open(t)
    const rouse = clientOf(t, cluster.urls)
    const [first, second] = [rouse.queue(unique()), rouse.queue(unique())]
    const ids = await library.transaction(async (executor) => {
      const some = await enqueueMany(executor, [
        { queue: first.name, payload: 1, partition: 'p' },
        { queue: second.name, payload: { big: 12345678901 } },
        { queue: first.name, payload: 2, partition: 'p', dedupeKey: 'two' },
      ])
      return [
        ...some,
        ...(await first.pushManyIn(executor, [
          { payload: 3, partition: 'p' },
          { payload: 4, partition: 'p' },
        ])),
      ]
    })
    const ofFirst = await popAll(first, 4)
    t.same(
      ofFirst.map(({ data }) => data),
      [1, 2, 3, 4],
    )
    t.equal(ofFirst[1]?.transactionId, 'two')
    const [ofSecond] = await second.pop({ wait: '10s' })
    t.match(ofSecond, { id: ids[1]?.id, data: { big: 12345678901 } })
    t.same(
      ofFirst.map(({ id }) => id),
      [ids[0]?.id, ids[2]?.id, ids[3]?.id, ids[4]?.id],
    )
  })

  test(`${name}: an acknowledgement commits with the effects of a handler`, async (t) => {
    const library = await open(t)
    const rouse = clientOf(t, cluster.urls)
    const queue = rouse.queue(unique())
    await createOrders(cluster)
    await queue.push({ order: 7 })
    const errors: unknown[] = []
    await new Promise<void>((resolve) => {
      queue.work({ onError: (error) => errors.push(error) }, async (message, context) => {
        await library.transaction(async (executor, sql) => {
          await sql(`insert into orders values (${Number(message.data.order)})`)
          await context.ackIn(executor)
        })
        resolve()
      })
    })
    await rouse.close()
    t.same(errors, [])
    t.equal(await countOrders(cluster), 1)
    t.equal(await unfinished(cluster, queue.name), 0)
  })

  test(`${name}: a lost lease is lease_lost, and a bad push has the server's code`, async (t) => {
    const library = await open(t)
    const queue = clientOf(t, cluster.urls).queue(unique())
    await queue.push(1)
    const [message] = await queue.pop({ wait: '10s' })
    await queue.ack(message as Message)
    await t.rejects(
      library.transaction((executor) => ackIn(executor, message as Message)),
      { name: 'RouseError', code: 'lease_lost', status: 409 },
    )
    await t.rejects(
      library.transaction((executor) => pushIn(executor, '', 1)),
      { name: 'RouseError', code: 'invalid_name', status: 400 },
    )
    await t.rejects(
      library.transaction((executor) =>
        enqueueMany(executor, [{ queue: 'q', payload: 1, partition: '' }]),
      ),
      { name: 'RouseError', code: 'invalid_name', errors: [{ field: 'messages[0].partition' }] },
    )
  })

  test(`${name}: another error of the database is the library's own`, async (t) => {
    const library = await open(t)
    const failed = library.transaction(async (executor, sql) => {
      await sql('set local search_path = nowhere')
      await executor.query('select nonsense', [])
    })
    const error = await failed.catch((reason: Error) => reason)
    t.not((error as Error).name, 'RouseError')
    t.match((error as Error).message, /nonsense/)
  })
}

async function createOrders({ database }: Cluster): Promise<void> {
  await database.pool.query('drop table if exists orders; create table orders (id int)')
}

async function countOrders({ database }: Cluster): Promise<number> {
  const { rows } = await database.pool.query('select count(*)::int as n from orders')
  return rows[0].n
}

async function unfinished({ database }: Cluster, queue: string): Promise<number> {
  const { rows } = await database.pool.query(
    `select count(*)::int as n from rouse.leases l join rouse.partitions p on p.id = l.partition_id
     join rouse.queues q on q.id = p.queue_id where q.name = $1`,
    [queue],
  )
  return rows[0].n
}

// biome-ignore lint/suspicious/noExplicitAny: payloads of every type
async function popAll(queue: any, count: number): Promise<Message<any>[]> {
  const found: Message[] = []
  while (found.length < count) {
    const some = await queue.pop({ wait: '10s', batch: count, partitions: count })
    if (some.length === 0) break
    found.push(...some)
    await queue.ack(some)
  }
  return found
}
