// A queue gets its options when it is created. Server-wide defaults that change later apply to later queues
// only.
import { configure } from '@rouse/storage'
import { test } from 'tap'
import { openStorage, type Storage } from '../support/storage.ts'

async function openWithDefaults(t: Parameters<typeof openStorage>[0]) {
  const storage = await openStorage(t)
  const setDefaults = (defaults: object) =>
    storage.rows('update rouse.server_defaults set options = $1', [JSON.stringify(defaults)])
  const change = async (queue: string, options: Record<string, unknown>) =>
    (await configure(storage.pool, { queue, options })).options
  return { ...storage, setDefaults, change }
}

/** The options in force, from the columns that the SQL functions read. */
async function inForce({ rows }: Pick<Storage, 'rows'>, queue: string) {
  const [row] = await rows<Record<string, unknown>>(
    `select ordering, lease_ms::float8, retry_limit, retry_backoff_ms::float8[], dead_letter, ttl_ms::float8, encryption
     from rouse.queues where name = $1`,
    [queue],
  )
  return row
}

const early = { leaseTime: 60, ordering: 'none', retryLimit: 7 }
const late = { leaseTime: 90, ttl: 5, encryptionEnabled: true, retryBackoffMs: [1], retryLimit: 8 }

test('a queue keeps the defaults of the moment it was created', async (t) => {
  const storage = await openWithDefaults(t)
  const { setDefaults, send, change } = storage
  await setDefaults(early)
  await send('pushed', 'p', [1])
  const configured = await change('configured', { priority: 5 })
  t.match(configured, { ...early, priority: 5, ttl: 0 })
  const before = [await inForce(storage, 'pushed'), await inForce(storage, 'configured')]
  t.match(before[0], { ordering: 'none', lease_ms: 60_000, retry_limit: 7 })

  await setDefaults(late)
  t.same(await change('configured', {}), configured)
  t.match(await change('pushed', {}), { ...early, ttl: 0, encryptionEnabled: false })
  t.same([await inForce(storage, 'pushed'), await inForce(storage, 'configured')], before)
  t.match(await change('new', {}), { ...late, ordering: 'keyed' })
})

test('configure changes the named options and no other', async (t) => {
  const storage = await openWithDefaults(t)
  const { setDefaults, change } = storage
  await setDefaults(early)
  const before = await change('q', { priority: 5 })
  const columns = await inForce(storage, 'q')
  await setDefaults(late)
  t.same(await change('q', { maxSize: 9 }), { ...before, maxSize: 9 })
  t.same(await inForce(storage, 'q'), columns)
})

test('null resets an option to the current default, whether it was set or not', async (t) => {
  const storage = await openWithDefaults(t)
  const { setDefaults, change } = storage
  await setDefaults(early)
  const before = await change('q', { leaseTime: 10, retryDelay: 50 })
  t.match(before, { leaseTime: 10, retryBackoffMs: [50] })
  await setDefaults(late)
  const after = await change('q', { leaseTime: null, retryLimit: null, retryDelay: null })
  t.match(after, { leaseTime: 90, retryLimit: 8, retryBackoffMs: [1], ordering: 'none', ttl: 0 })
  t.match(await inForce(storage, 'q'), { lease_ms: 90_000, retry_limit: 8, retry_backoff_ms: [1] })
})

test('an old name changes the option that replaced it, unless that is set', async (t) => {
  const { change } = await openWithDefaults(t)
  t.match(await change('q', { retryDelay: 50 }), { retryBackoffMs: [50], retryDelay: 50 })
  t.match(await change('q', { dlqAfterMaxRetries: false }), { deadLetterQueue: false })
  t.match(await change('q', { retryBackoffMs: [1, 2] }), { retryBackoffMs: [1, 2] })
  t.match(await change('q', { retryDelay: 70 }), { retryBackoffMs: [1, 2] })
  t.match(await change('q', { retryBackoffMs: null }), { retryBackoffMs: [70] })
})

test('configure returns the option in force, for every option', async (t) => {
  const { change, rows } = await openWithDefaults(t)
  const options = {
    leaseTime: 11,
    retryLimit: 12,
    retryBackoffMs: [13, 14],
    retryBackoff: null,
    deadLetterQueue: false,
    deadLetterTo: null,
    ordering: 'none',
    onFailure: 'skip',
    delayedProcessing: 15,
    windowBuffer: 16,
    ttl: 17,
    retentionEnabled: false,
    retentionSeconds: 18,
    completedRetentionSeconds: -1,
    maxWaitTimeSeconds: 19,
    maxSize: Number.MAX_SAFE_INTEGER,
    priority: -20,
    maxInFlight: 21,
    maxInFlightPerPartition: 23,
    rate: { limit: 5, perMs: 1_000 },
    partitionRate: { limit: 6, perMs: 7 },
    dedupWindowSeconds: 22,
    history: 'all',
    encryptionEnabled: true,
  }
  t.same(await change('q', options), options)
  const rules = await rows<{ name: string }>('select name from rouse.option_rules()')
  const older = ['retryDelay', 'dlqAfterMaxRetries']
  t.same(
    rules
      .map(({ name }) => name)
      .filter((name) => !older.includes(name))
      .sort(),
    Object.keys(options).sort(),
  )
})
