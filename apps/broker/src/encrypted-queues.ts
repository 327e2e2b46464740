// Which queues are encrypted is known to the database; a worker remembers it. A push is sealed before it leaves where the worker
// remembers, and `rouse.push` refuses plaintext for such a queue, so that a memory that is out of date costs a second call and
// never stores a payload in the clear. To seal for a queue that no longer wants it harms nobody.
import { type Operation, type PushItem, type SidecarDbPool, SidecarError } from '@rouse/sidecar'
import type pg from 'pg'
import { isSealed, type PayloadCipher } from './encryption.ts'
import type { Logger } from './log.ts'
import { encryptedQueues } from './statements/encrypted-queues.ts'

type Submit = SidecarDbPool['submit']

export interface EncryptedQueues {
  /** Resolves when the database was asked. A database that is away is asked again when it refuses. */
  refresh(): Promise<void>
  /** The sidecar, with payloads of encrypted queues sealed. */
  around(sidecar: Pick<SidecarDbPool, 'submit'>): Pick<SidecarDbPool, 'submit'>
}

export function createEncryptedQueues(options: {
  readonly cipher: PayloadCipher
  readonly pool: pg.Pool
  readonly log: Logger
}): EncryptedQueues {
  const { cipher, pool, log } = options
  let names: ReadonlySet<string> = new Set()

  async function refresh(): Promise<void> {
    if (!cipher.canSeal) return
    try {
      names = new Set(await encryptedQueues(pool))
    } catch (error) {
      log.warn({ reason: (error as Error).message }, 'could not ask which queues are encrypted')
    }
  }

  function seal(items: readonly PushItem[]): readonly PushItem[] {
    if (names.size === 0 || !items.some(({ queue }) => names.has(queue))) return items
    return items.map((item) => {
      if (!names.has(item.queue) || isSealed(item.payload)) return item
      return { ...item, payload: cipher.seal(item, item.payload) }
    })
  }

  function sealed<O extends Operation>(operation: O): O {
    if (operation.kind === 'PUSH') return { ...operation, items: seal(operation.items) }
    if (operation.kind !== 'TRANSACTION') return operation
    const { transaction } = operation
    return { ...operation, transaction: { ...transaction, pushes: seal(transaction.pushes) } }
  }

  /** Each refusal names one queue; the next attempt seals for it. */
  function attempt<O extends Operation>(
    sidecar: Pick<SidecarDbPool, 'submit'>,
    operation: O,
    refused: readonly string[],
  ): ReturnType<typeof sidecar.submit<O>> {
    return sidecar.submit(sealed(operation)).catch(async (error: unknown) => {
      const queue = refusedQueue(error)
      if (queue === undefined || refused.includes(queue)) throw error
      await refresh()
      // Queues that the refused push would have created are encrypted by default, and not there to be found.
      names = new Set([...names, ...refused, queue])
      return attempt(sidecar, operation, [...refused, queue])
    })
  }

  return {
    refresh,
    around(sidecar) {
      // A node without a key has nothing to do: the database refuses for it.
      if (!cipher.canSeal) return sidecar
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

/** Undefined: it failed for another reason. */
function refusedQueue(error: unknown): string | undefined {
  if (!(error instanceof SidecarError) || error.detail.code !== 'encryption_unavailable') return
  return typeof error.detail.queue === 'string' ? error.detail.queue : undefined
}
