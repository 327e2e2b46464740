// What happens to one queue is not felt by the others. Faults that touch single queues, or one transaction of a user, say whose
// calls they may make slow; of all other queues no push takes longer than a second, and no pop waits longer than that beside
// a message that it could have.
//
// A machine that is too busy cannot judge. Faults before which a tenth of the pushes took more than 250 ms in the calm, and calls
// beside which the database was slow with a commit of the harness (commit-probe.ts), are left out and reported.
import type { History } from '../../history/history.ts'
import type { Delivery, Lane, Message, Pop } from '../../history/history-views.ts'
import type { FaultRecord, MayHarm } from '../../history/records.ts'
import { Windows } from '../../history/windows.ts'
import { completion } from '../certainty.ts'
import { Findings } from '../findings.ts'
import { wasIdle } from './late-wakes.ts'
import { calmPushMsMax, type FaultRecovery } from './recovery.ts'

const callMsMax = 1_000
/** What other faults leave behind is not these ones'. */
const aftermathMs = 3_000
/** Its own calls wait for what it holds. */
const harnessProcess = 'nemesis'

export interface Neighbours {
  readonly findings: Findings
  /** What could not be judged, in words. */
  readonly remarks: readonly string[]
}

interface Judged {
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
  const judged = touching.filter(
    ({ calmMostPushMs: most }) => most !== undefined && most <= calmPushMsMax,
  )
  const faults = judged.map(({ fault }) => toJudged(fault))
  const others = new Windows(
    history.faults
      .filter(({ skipped, mayHarm }) => skipped === undefined && mayHarm === undefined)
      .map(({ start, end }) => ({ from: start, to: end + aftermathMs })),
  )
  let unjudged = 0
  const judge = (call: SlowCall, kind: keyof MayHarm): void => {
    const blamed = faults.find((one) => isBlamed(one, call, kind))
    if (blamed === undefined || others.touch(call.start, call.end)) return
    if (blamed.slowCommits.touch(call.start, call.end)) unjudged += 1
    else findings.add(`${blamed.fault.name} ${blamed.fault.target}: ${call.what}`, ...call.shownBy)
  }
  if (faults.length > 0) {
    for (const call of slowPushes(history)) judge(call, 'pushes')
    for (const call of slowPops(history)) judge(call, 'pops')
  }
  return { findings, remarks: remarksOn(touching.length - judged.length, unjudged) }
}

function toJudged(fault: FaultRecord): Judged {
  const { mayHarm = { pushes: [], pops: [] }, slowCommits = [] } = fault
  return { fault, mayHarm, slowCommits: new Windows(slowCommits) }
}

function isBlamed({ fault, mayHarm }: Judged, call: SlowCall, kind: keyof MayHarm): boolean {
  if (call.end < fault.start || call.start > fault.end) return false
  return call.queues.every((queue) => !mayHarm[kind].includes(queue))
}

function remarksOn(faults: number, calls: number): string[] {
  const remarks: string[] = []
  if (faults > 0) {
    remarks.push(
      `hostile neighbours: ${faults} faults not judged, as pushes took more than ${calmPushMsMax} ms in the calm before them`,
    )
  }
  if (calls > 0) {
    remarks.push(
      `hostile neighbours: ${calls} slow calls not judged, as the database was slow with a commit of the harness beside them`,
    )
  }
  return remarks
}

function* slowPushes(history: History): Iterable<SlowCall> {
  for (const call of history.pushCalls()) {
    const { process, start, end, queues, by, items } = call
    // A transaction of a user is several calls: it begins, enqueues one by one, and commits.
    const calls = by === 'sql' ? items + 2 : 1
    const isOver = end - start > callMsMax * calls && end !== Number.POSITIVE_INFINITY
    if (!isOver || process.startsWith(harnessProcess)) continue
    const what = `a push to ${queues.join(', ')} took ${Math.round(end - start)} ms`
    yield { queues, start, end, what, shownBy: [call] }
  }
}

/** Messages that came late to a group of which somebody waited all the while. */
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
        what: `a pop of ${queue} waited ${lateMs} ms beside a message of ${delivery.partition}`,
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

/** When it could be handed out, beyond doubt; Infinity where that is not known. */
function availableAt({ pushes }: Message): number {
  const [push] = pushes
  if (push?.outcome !== 'ok' || pushes.length > 1) return Number.POSITIVE_INFINITY
  return push.end + push.delayMs
}
