// The metrics of the node that answers, and what happened since it answered before.
import { useEffect, useRef, useState } from 'preact/hooks'
import { add, between, histograms, type Metrics, parseMetrics, type Timing } from './metrics.ts'
import { useData } from './use-data.ts'

export interface NodeMetrics {
  readonly node: string
  readonly metrics: Metrics
  /** Seconds, from the creation of a message to its first delivery, through all nodes that were read twice. */
  readonly delivery: Timing
  readonly deliveryNodes: readonly string[]
  /** Seconds, by SQL function. */
  readonly sql: ReadonlyMap<string, Timing>
}

const wanted =
  /^rouse_(info|writes_overdue|pool_|database_|table_|retention_|event_loop|delivery_duration|sql_duration|listener|http_requests)/
const everyMs = 3_000

interface Reading {
  readonly delivery: Timing
  readonly sql: ReadonlyMap<string, Timing>
}

export function useMetrics(): NodeMetrics | undefined {
  const { data } = useData<string>('/metrics', { everyMs })
  /** By node, because a balancer may choose another node for the next reading. */
  const before = useRef(new Map<string, Reading>())
  const deliveries = useRef(new Map<string, Timing>())
  const [current, setCurrent] = useState<NodeMetrics>()
  useEffect(() => {
    if (data === undefined) return
    const metrics = parseMetrics(data, (name) => wanted.test(name))
    const node = metrics.get('rouse_info')?.[0]?.labels.node ?? ''
    const now = read(metrics)
    const last = before.current.get(node)
    before.current.set(node, now)
    // Without a reading before, the numbers would be those since the start of the node.
    if (last !== undefined) deliveries.current.set(node, between(last.delivery, now.delivery))
    setCurrent({
      node,
      metrics,
      delivery: add([...deliveries.current.values()]),
      deliveryNodes: [...deliveries.current.keys()].toSorted(),
      sql: new Map(
        [...now.sql].map(([name, timing]) => [name, between(last?.sql.get(name), timing)]),
      ),
    })
  }, [data])
  return current
}

function read(metrics: Metrics): Reading {
  return {
    delivery: add([...histograms(metrics, 'rouse_delivery_duration_seconds', 'source').values()]),
    sql: histograms(metrics, 'rouse_sql_duration_seconds', 'function'),
  }
}
