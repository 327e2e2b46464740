import type { WakeHint } from '@rouse/protocol'
import { callRows, type Executor } from '../executor.ts'
import { readWakeHint, wakeHintColumns } from '../wake-hint.ts'

export interface ConfigureRequest {
  readonly queue: string
  readonly namespace?: string | undefined
  readonly task?: string | undefined
  /** Merged into the current options; a null value resets an option to its default. */
  readonly options: Readonly<Record<string, unknown>>
}

export interface ConfiguredQueue {
  readonly queueId: number
  readonly version: number
  /** Every option, resolved. */
  readonly options: Readonly<Record<string, unknown>>
  readonly namespace: string | null
  readonly task: string | null
}

const configured = {
  columns: 'queue_id, version, options, namespace, task',
  parameters: ['text', 'text', 'text', 'jsonb'],
}
const configureCall = { name: 'configure', ...configured }
const replaceCall = { name: 'replace_queue', ...configured }
const patchCall = { name: 'patch_queue', ...configured }

/** Creates the queue, or merges options into those of an existing one. */
export function configure(executor: Executor, request: ConfigureRequest): Promise<ConfiguredQueue> {
  return callConfigure(executor, configureCall, request)
}

/** Creates the queue, or replaces its namespace, its task and all its options. */
export function replaceQueue(
  executor: Executor,
  request: ConfigureRequest,
): Promise<ConfiguredQueue> {
  return callConfigure(executor, replaceCall, request)
}

/** Merges options into those of an existing queue. */
export function patchQueue(
  executor: Executor,
  request: ConfigureRequest,
): Promise<ConfiguredQueue> {
  return callConfigure(executor, patchCall, request)
}

async function callConfigure(
  executor: Executor,
  call: typeof configureCall,
  request: ConfigureRequest,
): Promise<ConfiguredQueue> {
  const rows = await callRows(executor, call, [
    request.queue,
    request.namespace ?? null,
    request.task ?? null,
    JSON.stringify(request.options),
  ])
  const [queueId, version, options, namespace, task] = rows[0] as [
    number,
    string,
    Record<string, unknown>,
    string | null,
    string | null,
  ]
  return { queueId, version: Number(version), options, namespace, task }
}

const checkCall = { name: 'check_options', columns: 'check_options', parameters: ['jsonb'] }

/** Rejects unknown options and wrong values, as `configure` would. Changes nothing. */
export async function checkOptions(
  executor: Executor,
  options: ConfigureRequest['options'],
): Promise<void> {
  await callRows(executor, checkCall, [JSON.stringify(options)])
}

const pauseCall = { name: 'pause', columns: wakeHintColumns, parameters: ['text', 'boolean'] }

/** Pauses or resumes delivery; resuming wakes the queue's waiters. */
export async function setPaused(
  executor: Executor,
  queue: string,
  paused: boolean,
): Promise<WakeHint[]> {
  const rows = await callRows(executor, pauseCall, [queue, paused])
  return paused ? [] : rows.map((row) => readWakeHint(row))
}

const purgeCall = { name: 'purge', columns: 'purge', parameters: ['text'] }

/**
 * Deletes every message of the queue. Resolves to their number, or to null if a background job deletes them.
 */
export async function purge(executor: Executor, queue: string): Promise<number | null> {
  const rows = await callRows(executor, purgeCall, [queue])
  const purged = rows[0]?.[0] ?? null
  return purged === null ? null : Number(purged)
}

const deleteQueueCall = { name: 'delete_queue', columns: 'delete_queue', parameters: ['text'] }

/** Deletes the queue and its contents; the name can be used again at once. Resolves to whether it existed. */
export async function deleteQueue(executor: Executor, queue: string): Promise<boolean> {
  const rows = await callRows(executor, deleteQueueCall, [queue])
  return rows[0]?.[0] === true
}
