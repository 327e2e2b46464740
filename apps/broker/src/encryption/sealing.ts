// Encrypts ("seals") the payloads of pushes to encrypted queues. The database knows which queues are
// encrypted, and each worker caches their names. If the cache lacks a queue, the worker sends plaintext,
// `rouse.push` rejects it, and the worker seals and sends it again. So a stale cache costs a second call, but
// no payload is stored in the clear. A sealed payload in a queue that is no longer encrypted does no harm.
import { withoutPlace } from '@rouse/protocol'
import { type Operation, type SidecarDbPool, SidecarError } from '@rouse/sidecar'
import { type NewMessage } from '@rouse/storage'
import type pg from 'pg'
import type { Logger } from '../log.ts'
import { EncryptedNames } from './encrypted-queue-cache.ts'
import type { PayloadCipher } from './payload-cipher.ts'

type Submit = SidecarDbPool['submit']

export interface EncryptedQueues {
  /** Resolves after the first query. */
  start(): Promise<void>
  stop(): void
  /** Queue options have changed, or may have. */
  refresh(): Promise<void>
  /** Wraps the sidecar and seals the payloads of encrypted queues. */
  wrap(sidecar: Pick<SidecarDbPool, 'submit'>): Pick<SidecarDbPool, 'submit'>
}

export function createEncryptedQueues(options: {
  readonly cipher: PayloadCipher
  readonly pool: pg.Pool
  readonly log: Logger
  /** The maximum age of the cache. */
  readonly everyMs?: number
}): EncryptedQueues {
  const { cipher } = options
  // Without a key the worker cannot seal. The database rejects plaintext for encrypted queues.
  if (!cipher.canSeal) return withoutKey
  const names = new EncryptedNames(options)

  function seal(items: readonly NewMessage[]): readonly NewMessage[] {
    if (!items.some(({ queue }) => names.has(queue))) return items
    return items.map((item) => {
      if (!names.has(item.queue)) return item
      // The payload is bound to the id, so the id cannot change when the place is known.
      const id = withoutPlace(item.id)
      return { ...item, id, payload: cipher.seal({ queue: item.queue, id }, item.payload) }
    })
  }

  function sealed<O extends Operation>(operation: O): O {
    if (operation.kind === 'PUSH') return { ...operation, items: seal(operation.items) }
    if (operation.kind !== 'TRANSACTION') return operation
    const { transaction } = operation
    return { ...operation, transaction: { ...transaction, pushes: seal(transaction.pushes) } }
  }

  /** Each rejection names one queue. The next attempt also seals the payloads for that queue. */
  function attempt<O extends Operation>(
    sidecar: Pick<SidecarDbPool, 'submit'>,
    operation: O,
    refused: readonly string[],
  ): ReturnType<typeof sidecar.submit<O>> {
    return sidecar.submit(sealed(operation)).catch(async (error: unknown) => {
      const queue = refusedQueue(error)
      if (queue === undefined || refused.includes(queue)) throw error
      await names.refresh()
      // A queue that the rejected push would have created is not in the database yet, but is encrypted by
      // default. The refresh does not find it.
      names.add([...refused, queue])
      return attempt(sidecar, operation, [...refused, queue])
    })
  }

  return {
    start: () => names.start(),
    stop: () => names.stop(),
    refresh: () => names.refresh(),
    wrap(sidecar) {
      const submit: Submit = (operation) => {
        if (operation.kind !== 'PUSH' && operation.kind !== 'TRANSACTION') {
          return sidecar.submit(operation)
        }
        return attempt(sidecar, operation, [])
      }
      return { submit }
    },
  }
}

const withoutKey: EncryptedQueues = {
  start: async () => {},
  stop: () => {},
  refresh: async () => {},
  wrap: (sidecar) => sidecar,
}

/** Undefined if the push failed for another reason. */
function refusedQueue(error: unknown): string | undefined {
  if (!(error instanceof SidecarError) || error.detail.code !== 'encryption_unavailable') return
  return typeof error.detail.queue === 'string' ? error.detail.queue : undefined
}
