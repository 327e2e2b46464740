import { dedupRetries } from './dedup-retries.ts'
import { delays } from './delays.ts'
import { cancels } from './jobs/cancels.ts'
import { letters } from './jobs/letters.ts'
import { priority } from './jobs/priority.ts'
import { results } from './jobs/results.ts'
import { unique } from './jobs/unique.ts'
import { large } from './large.ts'
import { newGroups } from './new-groups.ts'
import { onePartition } from './one-partition.ts'
import { ordered } from './ordered.ts'
import { pipeline } from './pipeline.ts'
import { plain } from './plain.ts'
import { poison } from './poison.ts'
import { purge } from './purge.ts'
import { redrive } from './redrive.ts'
import { retention } from './retention.ts'
import { slowConsumers } from './slow-consumers.ts'
import { sqlProducers } from './sql-producers.ts'
import { wakes } from './wakes.ts'
import { wide } from './wide.ts'
import type { Workload } from './workload.ts'

/** About 800 messages a second in total, at rate 1. */
export const workloads: readonly Workload[] = [
  plain,
  ordered,
  onePartition,
  slowConsumers,
  dedupRetries,
  unique,
  wakes,
  poison,
  delays,
  pipeline,
  sqlProducers,
  redrive,
  results,
  retention,
  purge,
  wide,
  large,
  newGroups,
  cancels,
  letters,
  priority,
]
