// A worker's cache of encrypted queues, and how long it may be stale.
import { randomBytes } from 'node:crypto'
import type { Operation, SidecarDbPool } from '@rouse/sidecar'
import type { NewMessage } from '@rouse/storage'
import { eventually } from '@rouse/testkit'
import type pg from 'pg'
import { type Test, test } from 'tap'
import { createPayloadCipher, sealedPrefix } from '../../src/encryption/payload-cipher.ts'
import { createEncryptedQueues } from '../../src/encryption/sealing.ts'
import { createLogger } from '../../src/log.ts'

const log = createLogger({ level: 'silent', node: 'a', process: 'test' })
const never = 600_000

/** A worker's cache, with a database that the test simulates. */
function memory(t: Test, { everyMs = never, keys = [randomBytes(32)] } = {}) {
  let encrypted: readonly string[] = []
  let reads = 0
  let held: Promise<void> | undefined
  const pool = {
    async query() {
      reads += 1
      const rows = encrypted.map((name) => [name])
      await held
      return { rows }
    },
  }
  const queues = createEncryptedQueues({
    cipher: createPayloadCipher(keys),
    pool: pool as unknown as pg.Pool,
    log,
    everyMs,
  })
  t.teardown(() => queues.stop())
  let stored: readonly NewMessage[] = []
  const sidecar = queues.wrap({
    submit: (async (operation: Operation) => {
      if (operation.kind === 'PUSH') stored = operation.items
    }) as unknown as SidecarDbPool['submit'],
  })
  return {
    queues,
    reads: () => reads,
    encrypt: (...names: string[]) => {
      encrypted = names
    },
    /** Delays the results of later reads. They still have the values of the moment of the read. */
    hold: () => {
      let release: () => void = () => {}
      held = new Promise((resolve) => {
        release = resolve
      })
      return release
    },
    /** Whether a push to the queue is stored encrypted. */
    seals: async (queue: string): Promise<boolean> => {
      const item = { queue, partition: 'p', id: 'i', payload: '1' } as unknown as NewMessage
      await sidecar.submit({ kind: 'PUSH', items: [item], bytes: 1 })
      return (stored[0] as NewMessage).payload.startsWith(sealedPrefix)
    },
  }
}

test('the cache is read before a worker serves, and again when options change', async (t) => {
  const { queues, encrypt, seals } = memory(t)
  encrypt('q')
  await queues.start()
  t.equal(await seals('q'), true)
  t.equal(await seals('other'), false)
  encrypt('other')
  await queues.refresh()
  t.equal(await seals('q'), false)
  t.equal(await seals('other'), true)
})

test('a change without a notification is found by the periodic read', async (t) => {
  const { queues, encrypt, seals } = memory(t, { everyMs: 20 })
  encrypt('q')
  await queues.start()
  encrypt()
  await eventually(async () => !(await seals('q')))
  encrypt('q')
  await eventually(() => seals('q'))
})

test('a read that began before a change is followed by another one', async (t) => {
  const { queues, encrypt, seals, hold } = memory(t)
  encrypt('q')
  await queues.start()
  const release = hold()
  const early = queues.refresh()
  encrypt()
  const late = queues.refresh()
  release()
  await early
  await late
  t.equal(await seals('q'), false)
})

test('a flood of changes costs two reads: the current one and one more', async (t) => {
  const { queues, reads, hold } = memory(t)
  await queues.start()
  const before = reads()
  const release = hold()
  const all = Array.from({ length: 1_000 }, () => queues.refresh())
  release()
  await Promise.all(all)
  t.equal(reads() - before, 2)
})

test('a node without a key never queries', async (t) => {
  const { queues, reads } = memory(t, { everyMs: 1, keys: [] })
  await queues.start()
  await queues.refresh()
  t.equal(reads(), 0)
})
