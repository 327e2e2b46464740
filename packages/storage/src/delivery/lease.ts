import type { WakeHint } from '@rouse/protocol'
import { boolArray, int8Array, uuidArray } from '../binary-array.ts'
import { callRows, type Executor } from '../executor.ts'
import { hintFields, readWakeHint } from '../wake-hint.ts'

const extendCall = {
  name: 'extend',
  columns: `lease_id, expires_ms, expires_ms - date_part('epoch', rouse.now()) * 1000`,
  parameters: ['uuid[]', 'bigint[]'],
}

const extendExactlyCall = {
  ...extendCall,
  name: 'extend_v2',
  parameters: [...extendCall.parameters, 'boolean[]'],
}

export interface Extension {
  readonly leaseId: string
  readonly durationMs: number
  /** The lease may also become shorter. It must hold one message only. */
  readonly exact?: boolean | undefined
}

export interface Extended {
  /** In ms since 1970, by the clock of the database. */
  readonly expiresAtMs: number
  /**
   * How long the lease still lasts. If a transaction with ack_in has locked the lease, it is not extended,
   * and this is less than requested.
   */
  readonly leftMs: number
}

/** The new expiry of each lease in ms since 1970, or null if it is lost. */
export async function extend(
  executor: Executor,
  leases: readonly Extension[],
): Promise<(number | null)[]> {
  return (await renew(executor, leases)).map((lease) => lease?.expiresAtMs ?? null)
}

/** How long each lease lasts now, or null if it is lost. */
export async function renew(
  executor: Executor,
  leases: readonly Extension[],
): Promise<(Extended | null)[]> {
  const values = [
    uuidArray(leases.map((lease) => lease.leaseId)),
    int8Array(leases.map((lease) => lease.durationMs)),
  ]
  const rows = leases.some(({ exact }) => exact === true)
    ? await callRows(executor, extendExactlyCall, [
        ...values,
        boolArray(leases.map(({ exact }) => exact === true)),
      ])
    : await callRows(executor, extendCall, values)
  return rows.map(([, expiresAtMs, leftMs]) =>
    expiresAtMs === null ? null : { expiresAtMs: expiresAtMs as number, leftMs: leftMs as number },
  )
}

const releaseCall = {
  name: 'release',
  columns: `lease_id, ${hintFields}`,
  parameters: ['uuid[]'],
}

/** Returns the messages of leases without charging an attempt. Ignores leases that are gone. */
export async function release(
  executor: Executor,
  leaseIds: readonly string[],
): Promise<{ readonly released: Set<string>; readonly woken: WakeHint[] }> {
  const rows = await callRows(executor, releaseCall, [uuidArray(leaseIds)])
  return {
    released: new Set(rows.map((row) => row[0] as string)),
    woken: rows.map((row) => readWakeHint(row, 1)),
  }
}
