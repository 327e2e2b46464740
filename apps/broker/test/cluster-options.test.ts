// Options that change through one worker of one node hold for all workers of all nodes.
import { randomBytes } from 'node:crypto'
import { eventually, type TestDatabase } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { startCluster } from './support/cluster.ts'
import { apiOf } from './support/http.ts'

const timeout = 120_000
/** At once, so that they come by several connections: the workers of a node take turns with these. */
const pushesAtOnce = 8
/** Less than a worker remembers without being told. */
const toldMsMax = 8_000

type Api = ReturnType<typeof apiOf>

async function startPair(t: Test) {
  const env = { ROUSE_ENCRYPTION_KEY: randomBytes(32).toString('base64') }
  const [a, b] = await startCluster(t, { nodes: 2, env })
  if (a === undefined || b === undefined) throw new Error('two nodes')
  return { a: apiOf(a.url), b: apiOf(b.url), database: a.database }
}

let pushed = 0

/** How many of a few pushes are stored in the clear. */
async function storedInTheClear({ pool }: TestDatabase, api: Api): Promise<number> {
  const payloads = Array.from({ length: pushesAtOnce }, () => {
    pushed += 1
    return `push ${pushed}`
  })
  const answers = await Promise.all(payloads.map((payload) => api.push({ queue: 'q', payload })))
  if (answers.some(({ status }) => status !== 201)) throw new Error(JSON.stringify(answers))
  const texts = payloads.map((payload) => JSON.stringify(payload))
  const sql = 'select from rouse.messages where payload = any ($1)'
  return (await pool.query(sql, [texts])).rowCount ?? 0
}

test('a queue that is no longer encrypted is stored in the clear by every worker', {
  timeout,
}, async (t) => {
  const { a, b, database } = await startPair(t)
  const inTheClear = (api: Api) => storedInTheClear(database, api)
  const encrypt = (encryptionEnabled: boolean) =>
    a.post('/configure', { queue: 'q', options: { encryptionEnabled } })

  await encrypt(true)
  t.equal(await inTheClear(a), 0)
  t.equal(await inTheClear(b), 0, 'every worker has met an encrypted queue')
  await encrypt(false)
  for (const [which, api] of Object.entries({ a, b })) {
    const isAll = async () => (await inTheClear(api)) === pushesAtOnce
    await t.resolves(eventually(isAll, { timeoutMs: toldMsMax }), `node ${which} was told`)
  }

  await t.test(
    'one that was changed in the database, with no word of it, soon is, too',
    async (t) => {
      await encrypt(true)
      t.equal(await inTheClear(b), 0)
      const options = JSON.stringify({ encryptionEnabled: false })
      await database.pool.query(`select rouse.configure('q', null, null, $1)`, [options])
      for (const api of [a, b]) {
        const isAll = async () => (await inTheClear(api)) === pushesAtOnce
        await t.resolves(eventually(isAll, { timeoutMs: 30_000, intervalMs: 250 }))
      }
    },
  )
})
