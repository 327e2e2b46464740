// One process with some clients of the workloads. It gets its job from its parent, reports its progress, and
// exits when the parent is gone.
import { HistoryWriter } from '../history/history-writer.ts'
import type { CallRecord } from '../history/records.ts'
import { workloads } from '../workloads/workloads.ts'
import { ChaosClient } from './chaos-client.ts'
import type { ClientCounts, ClientJob, FromClients, ToClients } from './client-messages.ts'

const countsEveryMs = 500

const producing = new AbortController()
const consuming = new AbortController()
const counts: ClientCounts = { pushed: 0, pushedTo: {}, popped: 0, notOk: 0 }

/** Called when the harness is gone. */
const orphaned = (): never => process.exit(1)

process.on('disconnect', orphaned)
process.on('message', (message: ToClients) => {
  switch (message.kind) {
    case 'job':
      void work(message.job)
      break
    case 'stop-producing':
      producing.abort()
      break
    case 'stop':
      producing.abort()
      consuming.abort()
      break
  }
})

async function work(job: ClientJob): Promise<void> {
  const writer = new HistoryWriter(job.historyFile)
  const started = job.clients.map((client) => start(client, job, writer))
  const timer = setInterval(() => tell({ kind: 'counts', counts }), countsEveryMs)
  const ended = (role: string): Promise<unknown> =>
    Promise.all(started.filter((one) => one.role === role).map((one) => one.ended))
  await ended('producer')
  tell({ kind: 'produced' })
  await ended('consumer')
  clearInterval(timer)
  tell({ kind: 'counts', counts })
  writer.close()
  process.off('disconnect', orphaned)
  process.disconnect()
}

function start(
  { workload, name, rate }: ClientJob['clients'][number],
  job: ClientJob,
  writer: HistoryWriter,
) {
  const spec = workloads
    .find((one) => one.name === workload)
    ?.clients.find((one) => one.name === name)
  if (spec === undefined) throw new Error(`no client ${name} in workload ${workload}`)
  const client = new ChaosClient({
    name: `${workload}/${name}.${job.generation}`,
    workload,
    seed: hash(`${job.seed} ${workload} ${name} ${job.generation}`),
    rate,
    urls: job.urls,
    writer,
    producing: producing.signal,
    consuming: consuming.signal,
    onEnded: count,
  })
  return { role: spec.role, ended: spec.run(client).then(() => client.close()) }
}

function count(record: CallRecord): void {
  if (record.outcome !== 'ok') counts.notOk += 1
  else if (record.kind === 'push') countPushed(record.workload, record.items.length)
  else if (record.kind === 'ack') countPushed(record.workload, record.pushes?.length ?? 0)
  else if (record.kind === 'pop') counts.popped += record.messages.length
}

function countPushed(workload: string, messages: number): void {
  counts.pushed += messages
  counts.pushedTo[workload] = (counts.pushedTo[workload] ?? 0) + messages
}

function tell(message: FromClients): void {
  process.send?.(message)
}

/** FNV-1a: each client gets its own random numbers, all of them determined by the seed of the run. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let i = 0; i < text.length; i += 1) {
    value = Math.imul(value ^ text.charCodeAt(i), 0x01000193)
  }
  return value >>> 0
}
