// The worker's end of the channel to its primary: the sidecar's calls of the SharedStateManager, notices of
// due times, and the messages from the primary.
import { isCompletionGroup, type WakeHint } from '@rouse/protocol'
import type { Coordinator, Operation, SidecarDbPool } from '@rouse/sidecar'
import type { AckItem, Extended, NewMessage, PushedMessage } from '@rouse/storage'
import type { EncryptedQueues } from '../encryption/sealing.ts'
import {
  createOutbox,
  type Due,
  type Outbox,
  type PrimaryMessage,
  readBatch,
  type WorkerMessage,
} from '../ipc.ts'
import type { WorkerDrain } from './drain.ts'
import type { IssuerClient } from './issuer-client.ts'
import type { KeyClient } from './key-client.ts'
import type { Observation } from './observation.ts'

export function outboxToPrimary(): Outbox<WorkerMessage> {
  return createOutbox<WorkerMessage>({
    send: (batch, done) => process.send?.(batch, undefined, undefined, done),
    droppable: ({ type }) => type === 'available' || type === 'free',
    dropped: { type: 'hintsLost' },
  })
}

/** Longer than the interval of fallback polls: a waiter that has waited this long needs no older hint. */
const keptMs = 10_000
const keptQueuesMax = 1_000

/**
 * Sends hints to the primary while any node waits for messages. Otherwise a push costs no message between
 * processes: its hint is kept for a while, and sent if a waiter appears before the primary's notice of that
 * waiter arrives here.
 */
export class HintGate {
  readonly #outbox: Outbox<WorkerMessage>
  readonly #nowMs: () => number
  #areWanted = true
  /**
   * One hint per queue for all its partitions and groups, and one for requests that wait for a message of the
   * queue to end. `atMs`: when the last such hint was sent.
   */
  readonly #kept = new Map<string, { readonly hint: WakeHint; readonly atMs: number }>()

  constructor(outbox: Outbox<WorkerMessage>, nowMs: () => number) {
    this.#outbox = outbox
    this.#nowMs = nowMs
  }

  send(type: 'available' | 'free', woken: readonly WakeHint[]): void {
    if (woken.length === 0) return
    if (this.#areWanted) this.#outbox.post({ type, woken })
    else for (const hint of woken) this.#keep(hint)
  }

  setWanted(areWanted: boolean): void {
    this.#areWanted = areWanted
    if (!areWanted || this.#kept.size === 0) return
    const sinceMs = this.#nowMs() - keptMs
    const recent = [...this.#kept.values()].filter(({ atMs }) => atMs >= sinceMs)
    this.#kept.clear()
    if (recent.length > keptQueuesMax) this.#outbox.post({ type: 'hintsLost' })
    else
      this.send(
        'available',
        recent.map(({ hint }) => hint),
      )
  }

  #keep({ queue, namespace, task, group }: WakeHint): void {
    const isEnd = typeof group === 'string' && isCompletionGroup(group)
    const key = isEnd ? `${group}${queue}` : queue
    const hint = { queue, namespace, task, ...(isEnd && { group }) }
    this.#kept.delete(key)
    this.#kept.set(key, { hint, atMs: this.#nowMs() })
    // Drops the oldest. If it was recent, the number of the others shows `setWanted` that hints are missing.
    if (this.#kept.size <= keptQueuesMax + 1) return
    const oldest = this.#kept.keys().next().value
    if (oldest !== undefined) this.#kept.delete(oldest)
  }
}

/** Each call of the coordinator sends a message to the primary, or keeps it at the gate. */
export function remoteCoordinator(
  outbox: Outbox<WorkerMessage>,
  nowMs: () => number,
): { readonly coordinator: Coordinator; readonly gate: HintGate } {
  const gate = new HintGate(outbox, nowMs)
  const coordinator: Coordinator = {
    setWaiting: (group, count) => outbox.post({ type: 'waiting', group, count }),
    requestGrant: (group, options) => outbox.post({ type: 'requestGrant', group, ...options }),
    grantTaken: (grant) => outbox.post({ type: 'taken', grant }),
    releaseGroup: (grant, outcome, found) =>
      outbox.post({ type: 'release', grant, outcome, found }),
    notifyMessageAvailable: (woken) => gate.send('available', woken),
    notifyPartitionFree: (woken) => gate.send('free', woken),
    notifyBlocked: (untilMs) => outbox.post({ type: 'blocked', untilMs }),
    notifyOutcomeUnknown: () => outbox.post({ type: 'outcomeUnknown' }),
  }
  return { coordinator, gate }
}

export function handlePrimaryMessages(parts: {
  readonly sidecar: Pick<SidecarDbPool, 'onGrant'>
  readonly gate: Pick<HintGate, 'setWanted'>
  readonly encrypted: Pick<EncryptedQueues, 'refresh'>
  readonly observation: Pick<Observation, 'received'>
  readonly keyClient: Pick<KeyClient, 'received'>
  readonly issuerClient: Pick<IssuerClient, 'received'>
  readonly reloadTls: () => void
  readonly drain: WorkerDrain
}): void {
  const { sidecar, gate, encrypted, observation, keyClient, issuerClient, reloadTls, drain } = parts
  process.on('message', (value: unknown) => {
    for (const message of readBatch<PrimaryMessage>(value)) {
      if (message.type === 'grant') sidecar.onGrant(message.grant)
      else if (message.type === 'hintsWanted') gate.setWanted(message.areWanted)
      else if (message.type === 'configured') void encrypted.refresh()
      else if (message.type === 'keys' || message.type === 'limitUse') keyClient.received(message)
      else if (message.type === 'issuer') issuerClient.received(message)
      else if (message.type === 'reloadTls') reloadTls()
      else if (message.type === 'drain') drain.begin()
      else observation.received(message)
    }
  })
}

type Submit = SidecarDbPool['submit']

/** Wraps the sidecar, so that the primary's scheduler gets a notice of everything that will be due later. */
export function withDueNotices(
  sidecar: Pick<SidecarDbPool, 'submit'>,
  outbox: Outbox<WorkerMessage>,
): Pick<SidecarDbPool, 'submit'> {
  const submit: Submit = (operation) => {
    const submitted = sidecar.submit(operation)
    const followUp = followUpFor(operation)
    if (followUp !== undefined) {
      // The caller handles the error. If the operation was committed anyway, the next due poll finds it.
      submitted.then(
        (result) => followUp(result, outbox),
        () => {},
      )
    }
    return submitted
  }
  return { submit }
}

type FollowUp = (result: unknown, outbox: Outbox<WorkerMessage>) => void

/** Returns a function that sends the notice for the result. Undefined if the operation schedules nothing. */
function followUpFor(operation: Operation): FollowUp | undefined {
  switch (operation.kind) {
    case 'PUSH':
      return (result, outbox) => notifyScheduled(operation.items, result as PushedMessage[], outbox)
    case 'ACK':
      return mayBeDue(operation.item) ? requestDuePoll : undefined
    case 'ACK_BATCH':
      return operation.items.some(mayBeDue) ? requestDuePoll : undefined
    case 'TRANSACTION': {
      const { acks, pushes } = operation.transaction
      if (acks.some(mayBeDue)) return requestDuePoll
      return (result, outbox) =>
        notifyScheduled(pushes, (result as { pushed: PushedMessage[] }).pushed, outbox)
    }
    case 'RENEW_LEASE':
      return operation.exact === true ? notifyExpiry : undefined
    case 'POP':
    case 'POP_WAIT':
    case 'PROGRESS':
    case 'END_WAIT':
    case 'RELEASE':
      return undefined
  }
}

/** Whether the ack leaves something to promote: a retry, or a dead letter for another queue. */
function mayBeDue({ status }: AckItem): boolean {
  return status !== undefined && status !== 'completed'
}

/** An exact time may be earlier than the one that the scheduler knows. */
function notifyExpiry(result: unknown, outbox: Outbox<WorkerMessage>): void {
  const extended = result as Extended | null
  if (extended !== null) outbox.post({ type: 'expires', atMs: extended.expiresAtMs })
}

function requestDuePoll(_result: unknown, outbox: Outbox<WorkerMessage>): void {
  outbox.post({ type: 'pollDue' })
}

/**
 * Sends the due time if there is only one and it is known. Requests a due poll if several messages are
 * scheduled or if the time depends on queue options.
 */
function notifyScheduled(
  items: readonly NewMessage[],
  pushed: readonly PushedMessage[],
  outbox: Outbox<WorkerMessage>,
): void {
  let known: { readonly queue: string; readonly due: Due } | undefined
  for (const [i, { status }] of pushed.entries()) {
    // If the replaced message was scheduled, its due time may have changed.
    if (status !== 'scheduled' && status !== 'replaced') continue
    const item = items[i] as NewMessage
    const due = dueOf(item)
    if (known !== undefined || due === undefined) return outbox.post({ type: 'pollDue' })
    known = { queue: item.queue, due }
  }
  if (known !== undefined) outbox.post({ type: 'scheduled', ...known })
}

function dueOf({ delayMs, runAtMs }: NewMessage): Due | undefined {
  if (runAtMs !== undefined) return { atMs: runAtMs }
  return delayMs === undefined || delayMs === 0 ? undefined : { inMs: delayMs }
}
