import { randomUUID } from 'node:crypto'
import { OutcomeUnknownError } from '@rouse/database'
import type { NewMessage } from '@rouse/storage'
import { type Connections, type Executor, poolExecutor } from '@rouse/storage'
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
  options: {
    readonly waitersMax?: number
    readonly timeoutMs?: number
    /** The answer of this statement is lost after it was executed. */
    readonly lose?: (statement: string) => boolean
  } = {},
): Promise<Started> {
  const database = await testDatabase(t, { poolMax: 12 })
  const coordinator = new TestCoordinator()
  const sidecar = new SidecarDbPool({
    executor: losing(poolExecutor(database.pool), options.lose),
    coordinator,
    worker: '1',
    random: () => 0.5,
    ...options,
  })
  coordinator.onGrant = (grant) => sidecar.onGrant(grant)
  t.teardown(() => sidecar.stop())
  return { sidecar, coordinator, database }
}

function losing(
  connections: Connections,
  lose = (_statement: string): boolean => false,
): Connections {
  const wrap = (executor: Executor): Executor => ({
    async query(statement) {
      const answer = await executor.query(statement)
      if (lose(statement.name ?? '')) throw new OutcomeUnknownError('the answer was lost')
      return answer
    },
  })
  return {
    ...wrap(connections),
    use: (work) => connections.use((executor) => work(wrap(executor))),
  }
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
