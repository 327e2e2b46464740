// A push that repeats one of unknown outcome. Its keys make sure that the message is stored once, for as long as the queue
// remembers them. Where it may have forgotten them, the repeat is refused: whether to risk a second message is for the
// producer to decide.
import { type PushItem, RouseError } from '@rouse/protocol'
import { forgetfulQueue } from '@rouse/storage'
import { administer } from '../http/admin-query.ts'
import type { BrokerContext } from '../worker/context.ts'

/** The items as the client sent them; how long ago it did so first. */
export async function checkRepeat(
  items: readonly PushItem[],
  repeatAfterMs: number,
  { pool, config }: Pick<BrokerContext, 'pool' | 'config'>,
): Promise<void> {
  if (items.some(({ transactionId }) => transactionId === undefined)) {
    throw tooLate('an item has no transactionId')
  }
  // This request may take until its own deadline to be stored.
  const windowMs = repeatAfterMs + config.writeTimeoutMs
  const queues = [...new Set(items.map(({ queue }) => queue))]
  const queue = await administer(pool, () => forgetfulQueue(pool, queues, windowMs))
  if (queue !== undefined) {
    throw tooLate(`the dedupWindowSeconds of the queue "${queue}" is too short`)
  }
}

function tooLate(reason: string): RouseError {
  return new RouseError(
    'repeat_too_late',
    `the first try may have been stored, and a repeat might be stored twice: ${reason}`,
  )
}
