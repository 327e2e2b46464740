// The past of queues, from the memory of all nodes that answer.
import {
  fieldError,
  parseChoice,
  parseQueueName,
  parseTime,
  readFields,
  type SeriesAnswer,
} from '@rouse/protocol'
import type { FastifyInstance } from 'fastify'
import { askPeers, fetchFrom } from '../../cluster/cluster-stats.ts'
import { mergeSeries, type NodeSeries } from '../../observe/series/merge-series.ts'
import {
  kept,
  type Resolution,
  type SeriesRequest,
  stepMs,
} from '../../observe/series/series-store.ts'
import type { BrokerContext } from '../../worker/context.ts'

type Query = Readonly<Record<string, unknown>>

export function seriesRoute(app: FastifyInstance, context: BrokerContext): void {
  app.get('/api/v1/series', async (request): Promise<SeriesAnswer> => {
    const { scope, ...asked } = readQuery(request.query as Query, context.clock.wallMs())
    const own = await context.series(asked)
    const { answers, unreachable } =
      scope === 'node' ? { answers: [], unreachable: [] } : await askOthers(asked)
    const { queue = null, resolution, from } = asked
    return {
      queue,
      scope,
      resolution,
      stepMs: stepMs[resolution],
      from: new Date(from * stepMs[resolution]).toISOString(),
      ...mergeSeries([own, ...answers]),
      unreachable: unreachable.map(({ id, error }) => ({ id: String(id), error: String(error) })),
    }
  })

  async function askOthers({ queue, resolution, from, to }: SeriesRequest) {
    const query = new URLSearchParams({
      scope: 'node',
      resolution,
      from: new Date(from * stepMs[resolution]).toISOString(),
      to: new Date(to * stepMs[resolution]).toISOString(),
      ...(queue === undefined ? {} : { queue }),
    })
    const length = to - from + 1
    return await askPeers(await context.stats(), async (url) => {
      const address = `${url}/api/v1/series?${query.toString()}`
      return readSeries(await fetchFrom(address, context.nodeAuthorization()), length)
    })
  }
}

function readQuery(query: Query, nowMs: number): SeriesRequest & { scope: 'node' | 'cluster' } {
  const { resolution, scope, queue } = readFields({
    resolution: () =>
      parseChoice('resolution', query.resolution ?? 'second', ['second', 'minute']) as Resolution,
    scope: () =>
      parseChoice('scope', query.scope ?? 'cluster', ['node', 'cluster']) as 'node' | 'cluster',
    queue: () => (query.queue === undefined ? undefined : parseQueueName(query.queue)),
  })
  const step = stepMs[resolution]
  // The current step is not over yet.
  const last = Math.floor(nowMs / step) - 1
  const { from, to } = readFields({
    from: () => (query.from === undefined ? -Infinity : parseTime('from', query.from) / step),
    to: () => (query.to === undefined ? last : parseTime('to', query.to) / step),
  })
  if (from > to) throw fieldError('invalid_request', 'from', 'must not be after to')
  const first = Math.max(Math.ceil(from), last - kept[resolution] + 1)
  return { queue, resolution, scope, from: first, to: Math.min(Math.floor(to), last) }
}

/** Checks the answer, because the address may belong to another version or another server. */
function readSeries(answer: unknown, length: number): NodeSeries {
  const { pushed, completed } = (answer ?? {}) as Readonly<Record<string, unknown>>
  if (isSeries(pushed, length) && isSeries(completed, length)) return { pushed, completed }
  throw new Error('its response is not a series')
}

function isSeries(values: unknown, length: number): values is (number | null)[] {
  return (
    Array.isArray(values) &&
    values.length === length &&
    values.every((value) => value === null || Number.isFinite(value))
  )
}
