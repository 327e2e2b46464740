// Writes that hit a row lock of another session, isolated from the writes of all other queues.
//
//   shared    the queue's writes share calls with those of every queue. If a call times out on a lock, all
//             its writes move to `apart`, because it is not known yet which of them hit the lock.
//   apart     the queue's writes share calls only with each other. Writes of a failed call are tried one
//             target (a partition) at a time; other writes share one call, which is split the same way if it
//             fails. Writes to several queues are grouped by their set of queues and tried one by one.
//   locked    a target that failed alone. Its writes are answered `partition_locked`, and so are those that
//             arrive within `refuseMs`. After that, one call tries the target again, with a short lock
//             timeout.
//
// A queue is shared again when its targets succeed: at once if none was locked, otherwise `apartMs` after the
// last failure. A queue runs one call at a time and takes turns with other queues, so that it cannot use up
// the slots.

import { SidecarError } from '../sidecar-error.ts'
import type { Semaphore } from '../slots.ts'
import type { PendingWrite } from './write-queue.ts'

/** The unit that a write locks: a partition of a queue. */
export interface WriteTarget {
  readonly queue: string
  readonly name: string
}

export interface LockedTargetsOptions<I, O> {
  /** Shared by all write queues of a worker; the kind is the queue name. */
  readonly slots: Semaphore
  readonly targetsOf: (input: I) => readonly WriteTarget[]
  readonly countMax: number
  readonly bytesMax: number
  /** Whether a write may share a call with the first of the batch. */
  readonly joins?: ((first: I, other: I) => boolean) | undefined
  /** One call. Resolves to false if it hit a lock, in which case nothing was written. */
  readonly call: (writes: PendingWrite<I, O>[], lockTimeoutMs: number) => Promise<boolean>
  readonly nowMs: () => number
}

/**
 * Lock timeouts of a call with several targets (`shared`), of a call with one target (`alone`), and of a call
 * to a queue with a locked target (`known`). PostgreSQL applies the timeout to each wait, and a call waits
 * twice for a row if other sessions wait for it, too.
 */
export const lockTimeoutsMs = { shared: 250, alone: 1_000, known: 50 } as const
const refuseMs = 1_000
const apartMs = 5_000
const pendingMax = 20_000
const queuesMax = 10_000
const targetsMax = 10_000
/** All writes that go to more queues than this share one group. */
const namedQueuesMax = 8

export interface Target<I, O> {
  writes: PendingWrite<I, O>[]
  refusedUntilMs: number
}

export interface TargetQueue<I, O> {
  joined: PendingWrite<I, O>[]
  readonly targets: Map<string, Target<I, O>>
  /** Targets with writes, ordered by their first write. */
  readonly waiting: Set<string>
  running: Promise<void> | undefined
  apartUntilMs: number
}

export class LockedTargets<I, O> {
  readonly #options: LockedTargetsOptions<I, O>
  /** The isolated queues. Usually empty, which lets callers skip the lookup. */
  readonly queues = new Map<string, TargetQueue<I, O>>()
  #pending = 0

  constructor(options: LockedTargetsOptions<I, O>) {
    this.#options = options
  }

  /** Takes a write of an isolated queue. False: the queue is shared. */
  take(write: PendingWrite<I, O>): boolean {
    const targets = this.#options.targetsOf(write.input)
    const home = groupOf(targets)
    const isOneQueue = home === targets[0]?.queue
    if (!this.#isApart(home)) {
      if (isOneQueue || !targets.some(({ queue }) => this.#isApart(queue))) return false
      this.moveIn([write])
      return true
    }
    const queue = this.queues.get(home) as TargetQueue<I, O>
    // Writes to several queues do not share a call: such a call would probably hit the lock again.
    if (!isOneQueue || targets.some(({ name }) => queue.targets.has(name))) {
      this.#addAlone(write, targets, queue)
    } else this.#admit(write, () => queue.joined.push(write))
    this.#run(home, queue)
    return true
  }

  /** Takes the writes of a call that hit a lock. */
  moveIn(writes: readonly PendingWrite<I, O>[]): void {
    for (const write of writes) {
      const targets = this.#options.targetsOf(write.input)
      const home = groupOf(targets)
      let queue = this.queues.get(home)
      if (queue === undefined) {
        this.#forgetShared()
        if (this.queues.size >= queuesMax) {
          write.reject(lockedError())
          continue
        }
        queue = {
          joined: [],
          targets: new Map(),
          waiting: new Set(),
          running: undefined,
          apartUntilMs: 0,
        }
        this.queues.set(home, queue)
      }
      this.#addAlone(write, targets, queue)
    }
    for (const [name, queue] of this.queues) this.#run(name, queue)
  }

  async idle(): Promise<void> {
    for (;;) {
      const running = [...this.queues.values()].flatMap((queue) => queue.running ?? [])
      if (running.length === 0) return
      await Promise.all(running)
    }
  }

  #addAlone(
    write: PendingWrite<I, O>,
    targets: readonly WriteTarget[],
    queue: TargetQueue<I, O>,
  ): void {
    const name = nameOf(targets)
    let target = queue.targets.get(name)
    if (target === undefined) {
      if (queue.targets.size >= targetsMax) forgetIdle(queue.targets)
      target = { writes: [], refusedUntilMs: 0 }
      queue.targets.set(name, target)
    }
    if (this.#options.nowMs() < target.refusedUntilMs) {
      write.reject(lockedError())
      return
    }
    const { writes } = target
    this.#admit(write, () => {
      writes.push(write)
      queue.waiting.add(name)
    })
  }

  #admit(write: PendingWrite<I, O>, add: () => void): void {
    if (this.#pending >= pendingMax) {
      write.reject(lockedError())
      return
    }
    this.#pending += 1
    write.lateCode = 'partition_locked'
    add()
  }

  #run(name: string, queue: TargetQueue<I, O>): void {
    if (queue.running !== undefined || !hasWrites(queue)) return
    queue.running = this.#work(name, queue).finally(() => {
      queue.running = undefined
      // Continues with writes that arrived meanwhile. If there are none, the queue may be shared again.
      if (hasWrites(queue)) this.#run(name, queue)
      else if (!this.#isNeeded(queue)) this.queues.delete(name)
    })
  }

  async #work(name: string, queue: TargetQueue<I, O>): Promise<void> {
    while (hasWrites(queue)) {
      await this.#options.slots.use(
        () => (queue.joined.length > 0 ? this.#callJoined(queue) : this.#callAlone(queue)),
        'patient',
        name,
      )
    }
  }

  async #callJoined(queue: TargetQueue<I, O>): Promise<void> {
    const writes = this.#takeBatch(queue.joined)
    this.#pending -= writes.length
    if (await this.#options.call(writes, lockTimeoutsMs.shared)) return
    for (const write of writes) this.#addAlone(write, this.#options.targetsOf(write.input), queue)
  }

  async #callAlone(queue: TargetQueue<I, O>): Promise<void> {
    const [name] = queue.waiting
    const target = queue.targets.get(name as string) as Target<I, O>
    const writes = this.#takeBatch(target.writes)
    this.#pending -= writes.length
    if (target.writes.length === 0) queue.waiting.delete(name as string)
    const isKnown = this.#options.nowMs() < queue.apartUntilMs
    const lockTimeoutMs = isKnown ? lockTimeoutsMs.known : lockTimeoutsMs.alone
    if (await this.#options.call(writes, lockTimeoutMs)) {
      target.refusedUntilMs = 0
      if (target.writes.length === 0) queue.targets.delete(name as string)
      return
    }
    const nowMs = this.#options.nowMs()
    target.refusedUntilMs = nowMs + refuseMs
    queue.apartUntilMs = nowMs + apartMs
    // Other writes to the same target would fail for the same reason.
    const refused = [...writes, ...target.writes.splice(0)]
    this.#pending -= refused.length - writes.length
    queue.waiting.delete(name as string)
    for (const write of refused) write.reject(lockedError())
  }

  /** The oldest writes that fit one call, at least one. */
  #takeBatch(from: PendingWrite<I, O>[]): PendingWrite<I, O>[] {
    const { countMax, bytesMax, joins } = this.#options
    let taken = 0
    let count = 0
    let bytes = 0
    for (const write of from) {
      count += write.size.count
      bytes += write.size.bytes
      if (taken > 0) {
        if (count > countMax || bytes > bytesMax) break
        const first = from[0] as PendingWrite<I, O>
        if (joins !== undefined && !joins(first.input, write.input)) break
      }
      taken += 1
    }
    return from.splice(0, taken)
  }

  #isApart(name: string): boolean {
    const queue = this.queues.get(name)
    if (queue === undefined) return false
    if (this.#isNeeded(queue)) return true
    this.queues.delete(name)
    return false
  }

  #isNeeded(queue: TargetQueue<I, O>): boolean {
    return (
      queue.running !== undefined || hasWrites(queue) || this.#options.nowMs() < queue.apartUntilMs
    )
  }

  #forgetShared(): void {
    if (this.queues.size < queuesMax) return
    for (const name of this.queues.keys()) this.#isApart(name)
  }
}

/**
 * The group of a write. A write to several queues is separate from writes to one of them: the locked row may
 * be in another queue.
 */
function groupOf(targets: readonly WriteTarget[]): string {
  const queues = new Set(targets.map(({ queue }) => queue))
  const [first = ''] = queues
  if (queues.size <= 1) return first
  return queues.size > namedQueuesMax ? 'many queues' : JSON.stringify([...queues].toSorted())
}

/** A write to several targets is tried alone: it must not block writes that need only one of them. */
function nameOf(targets: readonly WriteTarget[]): string {
  const [first] = targets
  if (first === undefined) return ''
  if (targets.every(({ queue, name }) => queue === first.queue && name === first.name)) {
    return first.name
  }
  return JSON.stringify(targets.map(({ queue, name }) => [queue, name]))
}

function hasWrites<I, O>(queue: TargetQueue<I, O>): boolean {
  return queue.joined.length > 0 || queue.waiting.size > 0
}

/**
 * Removes the oldest target without writes. If it is still locked, the next write to it hits the lock again.
 */
function forgetIdle<I, O>(targets: Map<string, Target<I, O>>): void {
  for (const [name, { writes }] of targets) {
    if (writes.length > 0) continue
    targets.delete(name)
    return
  }
}

function lockedError(): SidecarError {
  return new SidecarError(
    'partition_locked',
    'another PostgreSQL session holds a lock on this partition',
  )
}
