import { randomUUID } from 'node:crypto'
import type { NewMessage } from '@rouse/storage'
import { poolExecutor } from '@rouse/storage'
import type { TestDatabase } from '@rouse/testkit'
import { testDatabase } from '@rouse/testkit'
import type { Test } from 'tap'
import { type PopSpec, SidecarDbPool } from '../../src/index.ts'
import { TestCoordinator } from './test-coordinator.ts'

export interface Started {
  readonly sidecar: SidecarDbPool
  readonly coordinator: TestCoordinator
  readonly database: TestDatabase
}

export async function startSidecar(
  t: Test,
  options: { readonly waitersMax?: number; readonly timeoutMs?: number } = {},
): Promise<Started> {
  const database = await testDatabase(t, { poolMax: 12 })
  const coordinator = new TestCoordinator()
  const sidecar = new SidecarDbPool({
    executor: poolExecutor(database.pool),
    coordinator,
    worker: '1',
    random: () => 0.5,
    ...options,
  })
  coordinator.onGrant = (grant) => sidecar.onGrant(grant)
  t.teardown(() => sidecar.stop())
  return { sidecar, coordinator, database }
}

export function item(queue: string, fields: Partial<NewMessage> = {}): NewMessage {
  return { queue, partition: 'Default', id: randomUUID(), payload: '{"n":1}', ...fields }
}

export async function pushOne(sidecar: SidecarDbPool, pushed: NewMessage): Promise<void> {
  await sidecar.submit({ kind: 'PUSH', items: [pushed], bytes: pushed.payload.length })
}

export function spec(queue: string, fields: Partial<PopSpec> = {}): PopSpec {
  return { source: { queue }, group: 'g', batch: 1, partitions: 1, holder: 'test', ...fields }
}
