import { eventually } from '@rouse/testkit'
import { httpTransport } from '../clients/http-transport.ts'
import { RawClient } from '../clients/raw-client.ts'
import { configurationOf, type Workload } from '../workloads/workload.ts'

const patience = { timeoutMs: 60_000, intervalMs: 100 }

/** Configures the queues and sends one pop per group, so that each group exists before the first push. */
export async function prepareQueues(url: string, workloads: readonly Workload[]): Promise<void> {
  const transport = httpTransport()
  const client = new RawClient(url, transport, new AbortController().signal)
  try {
    for (const queue of workloads.flatMap(({ queues }) => queues)) {
      await ask(() => client.configure(queue.queue, configurationOf(queue)))
      for (const group of queue.groups ?? [undefined]) {
        const pop = { queue: queue.queue, group, batch: 1, partitions: 1, waitMs: 0 }
        await ask(() => client.pop(pop))
      }
    }
  } finally {
    transport.close()
  }
}

async function ask(call: () => Promise<{ outcome: string }>): Promise<void> {
  await eventually(async () => (await call()).outcome === 'ok', patience)
}
