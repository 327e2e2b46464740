// A worker's word to the timers of its primary: calls that make something fall due later tell so, that it need not wait
// for the next look at the database.
import type { Operation, SidecarDbPool } from '@rouse/sidecar'
import type { AckItem, PushedItem, PushItem } from '@rouse/storage'
import type { Due, Outbox, WorkerMessage } from '../ipc.ts'

type Submit = SidecarDbPool['submit']

/** The sidecar, with somebody who listens. */
export function withTimeDesk(
  sidecar: Pick<SidecarDbPool, 'submit'>,
  outbox: Outbox<WorkerMessage>,
): Pick<SidecarDbPool, 'submit'> {
  const submit: Submit = (operation) => {
    const submitted = sidecar.submit(operation)
    const heed = heedOf(operation)
    if (heed !== undefined) {
      // Whoever submitted hears of a failure; what it may have committed is found by looking.
      submitted.then(
        (result) => heed(result, outbox),
        () => {},
      )
    }
    return submitted
  }
  return { submit }
}

type Heed = (result: unknown, outbox: Outbox<WorkerMessage>) => void

/** What of an operation's result is to be told, if anything may be. */
function heedOf(operation: Operation): Heed | undefined {
  switch (operation.kind) {
    case 'PUSH':
      return (result, outbox) => tellPushed(operation.items, result as PushedItem[], outbox)
    case 'ACK':
      return comesBack(operation.item) ? tellLook : undefined
    case 'ACK_BATCH':
      return operation.items.some(comesBack) ? tellLook : undefined
    case 'TRANSACTION': {
      const { acks, pushes } = operation.transaction
      if (acks.some(comesBack)) return tellLook
      return (result, outbox) =>
        tellPushed(pushes, (result as { pushed: PushedItem[] }).pushed, outbox)
    }
    case 'POP':
    case 'POP_WAIT':
    case 'RENEW_LEASE':
    case 'RELEASE':
      return undefined
  }
}

function comesBack({ status }: AckItem): boolean {
  return status === 'failed' || status === 'retry'
}

function tellLook(_result: unknown, outbox: Outbox<WorkerMessage>): void {
  outbox.post({ type: 'look' })
}

/** One time is told. Of several, or of one that only the queue's options know, the database knows more than we do. */
function tellPushed(
  items: readonly PushItem[],
  pushed: readonly PushedItem[],
  outbox: Outbox<WorkerMessage>,
): void {
  let told: { readonly queue: string; readonly due: Due } | undefined
  for (const [i, { status }] of pushed.entries()) {
    if (status !== 'scheduled') continue
    const item = items[i] as PushItem
    const due = dueOf(item)
    if (told !== undefined || due === undefined) return outbox.post({ type: 'look' })
    told = { queue: item.queue, due }
  }
  if (told !== undefined) outbox.post({ type: 'scheduled', ...told })
}

function dueOf({ delayMs, runAtMs }: PushItem): Due | undefined {
  if (runAtMs !== undefined) return { atMs: runAtMs }
  return delayMs === undefined || delayMs === 0 ? undefined : { inMs: delayMs }
}
