import { dedupRetries } from './dedup-retries.ts'
import { delays } from './delays.ts'
import { onePartition } from './one-partition.ts'
import { ordered } from './ordered.ts'
import { pipeline } from './pipeline.ts'
import { plain } from './plain.ts'
import { poison } from './poison.ts'
import { slowConsumers } from './slow-consumers.ts'
import { sqlProducers } from './sql-producers.ts'
import { wakes } from './wakes.ts'
import type { Workload } from './workload.ts'

/** About 800 messages a second in all, at rate 1. */
export const workloads: readonly Workload[] = [
  plain,
  ordered,
  onePartition,
  slowConsumers,
  dedupRetries,
  wakes,
  poison,
  delays,
  pipeline,
  sqlProducers,
]
