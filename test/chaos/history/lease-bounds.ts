// The bounds of every lease: when it can have begun, expired, and been released. history.ts explains what
// follows from them.
//
// The database counts a lease from the time at which the pop's SQL call read the clock. The call may return
// messages that were pushed slightly later, while it ran; `popCallMs` is the allowance for that. During a
// fault a call may take any time, so only the time at which the client sent the pop counts. The database
// clock is cut to milliseconds and differs from the clocks of the clients; `clockMs` is the allowance for
// that.
import { Column } from './columns.ts'
import { type HistoryTables, outcomes } from './history-tables.ts'
import type { Operations } from './operations.ts'
import type { Windows } from './windows.ts'

const popCallMs = 500
const clockMs = 5

export interface LeaseBounds {
  readonly begins: Column
  readonly expiresMin: Column
  readonly expiresMax: Column
  readonly releasedMin: Column
  readonly releasedMax: Column
}

export function leaseBounds(
  tables: HistoryTables,
  deliveryOfLease: Int32Array,
  { faulty, operations }: { readonly faulty: Windows; readonly operations: Operations },
): LeaseBounds {
  const { calls, pops, deliveries } = tables
  const bounds: LeaseBounds = {
    begins: new Column('float'),
    expiresMin: new Column('float'),
    expiresMax: new Column('float'),
    releasedMin: new Column('float'),
    releasedMax: new Column('float'),
  }
  for (let pop = 0; pop < pops.call.length; pop += 1) {
    bounds.begins.push(calls.start.at(pops.call.at(pop)))
    bounds.expiresMax.push(calls.end.at(pops.call.at(pop)) + pops.leaseMs.at(pop) + clockMs)
    bounds.expiresMin.push(0)
    bounds.releasedMin.push(Number.POSITIVE_INFINITY)
    bounds.releasedMax.push(Number.POSITIVE_INFINITY)
  }
  // A message is leased after it was pushed, and all messages of one pop are leased at the same time.
  const calm = Uint8Array.from({ length: pops.call.length }, (_, pop) => {
    const call = pops.call.at(pop)
    return faulty.touch(calls.start.at(call), calls.end.at(call)) ? 0 : 1
  })
  const pushedFrom = earliestPushes(tables)
  for (let row = 0; row < deliveries.pop.length; row += 1) {
    const pop = deliveries.pop.at(row)
    const pushed = pushedFrom[deliveries.message.at(row)] ?? Number.POSITIVE_INFINITY
    if (calm[pop] === 1 && pushed !== Number.POSITIVE_INFINITY) {
      raise(bounds.begins, pop, pushed - popCallMs)
    }
  }
  for (let pop = 0; pop < pops.call.length; pop += 1) {
    bounds.expiresMin.set(pop, bounds.begins.at(pop) + pops.leaseMs.at(pop) - clockMs)
  }
  for (const { lease, record } of tables.leaseCalls) {
    const delivery = deliveryOfLease[lease] ?? -1
    if (delivery < 0 || record.outcome === 'fail') continue
    const pop = deliveries.pop.at(delivery)
    const sure = record.outcome === 'ok'
    if (record.kind === 'release') {
      lower(bounds.releasedMin, pop, record.start)
      if (sure) lower(bounds.releasedMax, pop, record.end)
      continue
    }
    const extension = record.lastsMs ?? (record.seconds ?? 0) * 1_000
    if (sure) raise(bounds.expiresMin, pop, record.start + extension - clockMs)
    // A call without a response may take effect at any later time.
    raise(
      bounds.expiresMax,
      pop,
      sure ? record.end + extension + clockMs : Number.POSITIVE_INFINITY,
    )
  }
  if (!operations.isEmpty) endByOperations(tables, operations, bounds)
  return bounds
}

/** Lowers `releasedMin` of leases that an operator's purge or seek may have ended. */
function endByOperations(
  { deliveries, lanes, consumers, names }: HistoryTables,
  operations: Operations,
  { begins, releasedMin }: LeaseBounds,
): void {
  for (let row = 0; row < deliveries.pop.length; row += 1) {
    const pop = deliveries.pop.at(row)
    const consumer = lanes.consumer.at(deliveries.lane.at(row))
    const place = {
      queue: names.textOf(consumers.queue.at(consumer)),
      group: names.textOf(consumers.group.at(consumer)),
    }
    lower(releasedMin, pop, operations.movedFrom(place, begins.at(pop)))
  }
}

/** For each message, the time at which the first push that may have stored it was sent. */
function earliestPushes({ calls, pushes, messages }: HistoryTables): Float64Array {
  const earliest = new Float64Array(messages.queue.length).fill(Number.POSITIVE_INFINITY)
  const failed = outcomes.indexOf('fail')
  for (let row = 0; row < pushes.call.length; row += 1) {
    const call = pushes.call.at(row)
    if (calls.outcome.at(call) === failed) continue
    const message = pushes.message.at(row)
    earliest[message] = Math.min(earliest[message] ?? 0, calls.start.at(call))
  }
  return earliest
}

function lower(column: Column, row: number, value: number): void {
  column.set(row, Math.min(column.at(row), value))
}

function raise(column: Column, row: number, value: number): void {
  column.set(row, Math.max(column.at(row), value))
}
