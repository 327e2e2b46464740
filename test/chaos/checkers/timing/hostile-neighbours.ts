// A fault of one queue must not affect others. Faults that affect single queues, or that are one user's
// transaction, name the queues whose calls they may slow down. On all other queues no push takes more than a
// second, and no pop waits longer than a second while a message is available.
//
// A busy machine is too slow to check this. The rule skips two things and reports how many it skipped: faults
// before which a tenth of the pushes took more than 250 ms, and calls during which a probe commit of the
// harness was slow (commit-probe.ts).
import type { History } from '../../history/history.ts'
import type { Delivery, Lane, Message, Pop } from '../../history/history-views.ts'
import type { FaultRecord, MayHarm } from '../../history/records.ts'
import { Windows } from '../../history/windows.ts'
import { completion } from '../certainty.ts'
import { Findings } from '../findings.ts'
import { wasIdle } from './late-wakes.ts'
import { calmPushMsMax, type FaultRecovery } from './recovery.ts'

const callMsMax = 1_000
/** The effects of another fault may last for this long after its end. */
const aftermathMs = 3_000
/**
 * The name of the harness's own client. Its calls are not checked, because they wait for the locks of the
 * fault.
 */
const harnessProcess = 'nemesis'

export interface Neighbours {
  readonly findings: Findings
  /** Notes about what could not be checked. */
  readonly remarks: readonly string[]
}

interface Checked {
  readonly fault: FaultRecord
  readonly mayHarm: MayHarm
  readonly slowCommits: Windows
}

interface SlowCall {
  readonly queues: readonly string[]
  readonly start: number
  readonly end: number
  readonly what: string
  readonly shownBy: readonly object[]
}

export function hostileNeighbours(
  history: History,
  recoveries: readonly FaultRecovery[],
): Neighbours {
  const findings = new Findings()
  const touching = recoveries.filter(({ fault }) => fault.mayHarm !== undefined)
  const checked = touching.filter(
    ({ calmMostPushMs: most }) => most !== undefined && most <= calmPushMsMax,
  )
  const faults = checked.map(({ fault }) => toChecked(fault))
  const others = new Windows(
    history.faults
      .filter(({ skipped, mayHarm }) => skipped === undefined && mayHarm === undefined)
      .map(({ start, end }) => ({ from: start, to: end + aftermathMs })),
  )
  let uncheckedCount = 0
  const checkCall = (call: SlowCall, kind: keyof MayHarm): void => {
    const blamed = faults.find((one) => isBlamed(one, call, kind))
    if (blamed === undefined || others.touch(call.start, call.end)) return
    if (blamed.slowCommits.touch(call.start, call.end)) uncheckedCount += 1
    else findings.add(`${blamed.fault.name} ${blamed.fault.target}: ${call.what}`, ...call.shownBy)
  }
  if (faults.length > 0) {
    for (const call of slowPushes(history)) checkCall(call, 'pushes')
    for (const call of slowPops(history)) checkCall(call, 'pops')
  }
  return { findings, remarks: remarksOn(touching.length - checked.length, uncheckedCount) }
}

function toChecked(fault: FaultRecord): Checked {
  const { mayHarm = { pushes: [], pops: [] }, slowCommits = [] } = fault
  return { fault, mayHarm, slowCommits: new Windows(slowCommits) }
}

function isBlamed({ fault, mayHarm }: Checked, call: SlowCall, kind: keyof MayHarm): boolean {
  if (call.end < fault.start || call.start > fault.end) return false
  return call.queues.every((queue) => !mayHarm[kind].includes(queue))
}

function remarksOn(faults: number, calls: number): string[] {
  const remarks: string[] = []
  if (faults > 0) {
    remarks.push(
      `hostile neighbours: ${faults} faults not checked: pushes took more than ${calmPushMsMax} ms before them`,
    )
  }
  if (calls > 0) {
    remarks.push(
      `hostile neighbours: ${calls} slow calls not checked: a probe commit was slow at the same time`,
    )
  }
  return remarks
}

function* slowPushes(history: History): Iterable<SlowCall> {
  for (const call of history.pushCalls()) {
    const { process, start, end, queues, by, items } = call
    // A user's transaction is several calls: it begins, enqueues items one by one, and commits.
    const calls = by === 'sql' ? items + 2 : 1
    const isOver = end - start > callMsMax * calls && end !== Number.POSITIVE_INFINITY
    if (!isOver || process.startsWith(harnessProcess)) continue
    const what = `a push to ${queues.join(', ')} took ${Math.round(end - start)} ms`
    yield { queues, start, end, what, shownBy: [call] }
  }
}

/** Messages that came late to a group that had a waiter all the time. */
function* slowPops(history: History): Iterable<SlowCall> {
  const pops = new Map<string, readonly Pop[]>()
  for (const lane of history.lanes()) {
    for (const { delivery, availableFrom } of lateOnes(history, lane)) {
      const { queue, group } = lane
      const name = JSON.stringify([queue, group])
      const known = pops.get(name) ?? [...history.pops(queue, group)]
      pops.set(name, known)
      const idle = known.find((pop) => wasIdle(pop, availableFrom, delivery.end, callMsMax))
      if (idle === undefined) continue
      const lateMs = Math.round(delivery.end - availableFrom)
      yield {
        queues: [queue],
        start: availableFrom,
        end: delivery.end,
        what: `a pop of ${queue} waited ${lateMs} ms although partition ${delivery.partition} had a message`,
        shownBy: [delivery, idle],
      }
    }
  }
}

interface LateOne {
  readonly delivery: Delivery
  readonly availableFrom: number
}

function* lateOnes(history: History, lane: Lane): Iterable<LateOne> {
  const isOrdered = history.queues.get(lane.queue)?.ordering === 'partition'
  const inTurn = [...lane.deliveries].sort((a, b) => a.begins - b.begins)
  const seen = new Set<number>()
  let freeFrom = 0
  for (const delivery of inTurn) {
    const message = history.message(delivery.message)
    const availableFrom = Math.max(availableAt(message), isOrdered ? freeFrom : 0)
    if (!seen.has(message.row) && delivery.end - availableFrom > callMsMax) {
      yield { delivery, availableFrom }
    }
    seen.add(message.row)
    freeFrom = Math.max(freeFrom, completion(delivery)?.end ?? Number.POSITIVE_INFINITY)
  }
}

/** The time from which the message was certainly deliverable; Infinity if that is unknown. */
function availableAt({ pushes }: Message): number {
  const [push] = pushes
  if (push?.outcome !== 'ok' || pushes.length > 1) return Number.POSITIVE_INFINITY
  return push.end + push.delayMs
}
