// How deliveries end: every form of ack, release, extension.
import fc from 'fast-check'
import { type Ending, end, release, retryLimitOf } from '../delivering.ts'
import { canEnd, type Deed, must, mustAnswer, pick, type Scene, verb } from '../verb.ts'
import type { Delivery, World } from '../world.ts'
import { aimed, pathOf, popArgs, popped } from './consuming.ts'
import { isEach } from './popped-leases.ts'
import { fatesOf, isRefused, items, numbered, pushed, pushText } from './producing.ts'
import { deliveryFor, workOff } from './supplying.ts'

const index = fc.nat(20)
/** One call in eight refers to a delivery that may have ended long ago. */
const stale = fc.nat(7).map((number) => number === 0)

export const endings = fc.record({
  status: fc.constantFrom(
    'completed',
    'completed',
    'failed',
    'failed',
    'retry',
    'dlq',
    'dlq',
  ) as fc.Arbitrary<'completed' | 'failed' | 'retry' | 'dlq'>,
  code: fc.constantFrom(undefined, undefined, 'E1', 'E2'),
  delayMs: fc.constantFrom(undefined, undefined, undefined, 0, 2_000, 60_000),
  result: fc.constantFrom<unknown>(undefined, undefined, undefined, null, 7, { ok: [true] }),
})

function endingBody({ status, code, delayMs, result }: Ending): Record<string, unknown> {
  return {
    status,
    result: status === 'completed' ? result : undefined,
    errorCode: code,
    delayMs,
    error: code === undefined ? undefined : `it was ${code}`,
  }
}

/** The ways to name a message: `token` is that of clients of 0.1.0. */
type Way = 'receipt' | 'ids' | 'token'
const ways = fc.constantFrom('receipt', 'ids', 'token') as fc.Arbitrary<Way>

function ackBody(delivery: Delivery, ending: Ending, by: Way): Record<string, unknown> {
  const { transactionId, receipt, lease } = delivery
  if (by === 'receipt') return { receipt, ...endingBody(ending) }
  const leaseId = by === 'ids' ? delivery.leaseId : receipt
  return { transactionId, partitionId: lease.partitionId, leaseId, ...endingBody(ending) }
}

/** A lease by its id, or by the receipt of a message. */
function leaseText(delivery: Delivery, { byReceipt }: { readonly byReceipt: boolean }): string {
  return byReceipt ? delivery.receipt : delivery.lease.id
}

export interface AckResult {
  readonly success: boolean
  readonly dlq?: boolean
}

/** Ends the deliveries in turn, and checks the result of each ack. */
function endAll(world: World, acks: readonly Ack[], results: readonly AckResult[]): number {
  let ended = 0
  for (const [i, { delivery, ending }] of acks.entries()) {
    const canIt = canEnd(world, delivery)
    const dead = canIt && end(world, delivery.lease, [delivery.seq], ending)
    checkResult(results[i] as AckResult, canIt, dead)
    if (canIt) ended += 1
  }
  return ended
}

function checkResult(result: AckResult, canIt: boolean, dead: boolean): void {
  must(result.success === canIt, `the success of an ack is ${result.success} instead of ${canIt}`)
  must((result.dlq ?? false) === dead, `the dlq of an ack is ${result.dlq} instead of ${dead}`)
}

interface Ack {
  readonly delivery: Delivery
  readonly ending: Ending
  readonly by: Way
}

const ackList = fc.record({
  list: fc.array(fc.record({ index, ending: endings, by: ways }), { minLength: 1, maxLength: 4 }),
  stale,
  /** Whether the same delivery may occur twice. */
  twice: fc.nat(9).map((number) => number === 0),
})

interface AckList {
  readonly list: readonly { readonly index: number; readonly ending: Ending; readonly by: Way }[]
  readonly stale: boolean
  readonly twice: boolean
}

async function acksOf(scene: Scene, { list, stale: isStale, twice }: AckList): Promise<Ack[]> {
  const acks: Ack[] = []
  for (const one of list) {
    const delivery = await deliveryFor(scene, one.index, isStale)
    const isThere = acks.some((ack) => ack.delivery === delivery)
    const { ending: how, by } = one
    if (delivery !== undefined && (twice || !isThere)) acks.push({ delivery, ending: how, by })
  }
  return acks
}

function describe({ lease, seq }: Delivery): string {
  return `${lease.queue.name.slice(-1)}/${lease.partition.name} ${seq} of ${lease.group}`
}

function describeAcks(acks: readonly Ack[]): string {
  return acks
    .map(({ delivery, ending }) => `${describe(delivery)} ${JSON.stringify(ending)}`)
    .join(', ')
}

export const ending = [
  verb({
    name: 'ack',
    weight: 12,
    args: fc.record({
      index,
      stale,
      ending: endings,
      by: ways,
      group: fc.constantFrom(undefined, undefined, undefined, 'own', 'own', 'own', 'own', 'other'),
    }),
    async run(scene, args): Promise<Deed> {
      const { world, product } = scene
      const delivery = await deliveryFor(scene, args.index, args.stale)
      if (delivery === undefined) return undefined
      const consumerGroup = args.group === 'own' ? delivery.lease.group : args.group
      const body = ackBody(delivery, args.ending, args.by)
      const answer = await product.call('POST', '/ack', { ...body, consumerGroup })
      const did = `ack ${describe(delivery)} by ${args.by} ${JSON.stringify(args.ending)}`
      if (!canEnd(world, delivery) || args.group === 'other') {
        mustAnswer(answer, 409, 'lease_lost')
        return { did: `${did}: lease lost`, effect: 'refused' }
      }
      mustAnswer(answer, 200)
      const dead = end(world, delivery.lease, [delivery.seq], args.ending)
      checkResult(answer.body[0], true, dead)
      return { did, effect: 'done' }
    },
  }),
  verb({
    name: 'ack batch',
    weight: 4,
    args: ackList,
    async run(scene, drawn): Promise<Deed> {
      const { world, product } = scene
      const acks = await acksOf(scene, drawn)
      if (acks.length === 0) return undefined
      const acknowledgments = acks.map(({ delivery, ending: one, by }) =>
        ackBody(delivery, one, by),
      )
      const answer = await product.call('POST', '/ack/batch', { acknowledgments })
      mustAnswer(answer, 200)
      const ended = endAll(world, acks, answer.body)
      return { did: `ack batch ${describeAcks(acks)}`, effect: ended > 0 ? 'done' : 'refused' }
    },
  }),
  verb({
    name: 'ack lease',
    weight: 5,
    args: fc.record({ index, stale, ending: endings, byReceipt: fc.boolean() }),
    async run(scene, args): Promise<Deed> {
      const { world, product } = scene
      const delivery = await deliveryFor(scene, args.index, args.stale)
      if (delivery === undefined) return undefined
      const one = { ...args.ending, result: undefined }
      const body = { leaseId: leaseText(delivery, args), ...endingBody(one) }
      const answer = await product.call('POST', '/ack/batch', body)
      const did = `ack lease of ${describe(delivery)} ${JSON.stringify(args.ending)}`
      const leases = liveLeases(world, delivery)
      if (leases.length === 0) {
        mustAnswer(answer, 409, 'lease_lost')
        return { did: `${did}: lease lost`, effect: 'refused' }
      }
      mustAnswer(answer, 200)
      const dead = leases.map((lease) => end(world, lease, [...lease.left], one))
      checkResult(answer.body[0], true, dead.includes(true))
      return { did, effect: 'done' }
    },
  }),
  verb({
    name: 'consume all',
    weight: 3,
    args: fc.record({ index, status: fc.constantFrom('completed', 'completed', 'dlq') }),
    async run(scene, args): Promise<Deed> {
      const queue = pick([...scene.world.queues.values()], args.index)
      if (queue === undefined) return undefined
      let count = 0
      for (const group of queue.groups) {
        count += await workOff(scene, queue.name, group, args.status as 'completed' | 'dlq')
      }
      const did = `consume all of ${queue.name.slice(-1)}: ${count} ${args.status}`
      return { did, effect: count > 0 ? 'done' : 'refused' }
    },
  }),
  verb({
    name: 'release',
    weight: 9,
    args: fc.record({ index, stale, byReceipt: fc.boolean() }),
    async run(scene, args): Promise<Deed> {
      const { world, product } = scene
      const delivery = await deliveryFor(scene, args.index, args.stale)
      if (delivery === undefined) return undefined
      const answer = await product.call('DELETE', `/lease/${leaseText(delivery, args)}`)
      const leases = liveLeases(world, delivery)
      const did = `release the lease of ${describe(delivery)}`
      if (leases.length === 0) {
        mustAnswer(answer, 409, 'lease_lost')
        return { did: `${did}: lease lost`, effect: 'refused' }
      }
      mustAnswer(answer, 200)
      for (const lease of leases) release(world, lease)
      return { did, effect: 'done' }
    },
  }),
  verb({
    name: 'extend',
    weight: 3,
    args: fc.record({
      index,
      stale,
      byReceipt: fc.boolean(),
      seconds: fc.constantFrom(undefined, 1, 500),
    }),
    async run(scene, args): Promise<Deed> {
      const { world, product } = scene
      const delivery = await deliveryFor(scene, args.index, args.stale)
      if (delivery === undefined) return undefined
      const answer = await product.call('POST', `/lease/${leaseText(delivery, args)}/extend`, {
        seconds: args.seconds,
      })
      const did = `extend the lease of ${describe(delivery)} by ${args.seconds ?? 60}`
      const live = world.leases.filter(
        ({ id, expiresAt }) => id === delivery.lease.id && expiresAt > world.now,
      )
      if (live.length === 0) {
        mustAnswer(answer, 409, 'lease_lost')
        return { did: `${did}: lease lost`, effect: 'refused' }
      }
      mustAnswer(answer, 200)
      const until = world.now + (args.seconds ?? 60) * 1_000
      for (const lease of live) {
        if (lease.lockedBy === undefined) lease.expiresAt = Math.max(lease.expiresAt, until)
      }
      const expiresAt = new Date(Math.min(...live.map((lease) => lease.expiresAt))).toISOString()
      must(
        answer.body.expiresAt === expiresAt,
        `extended to ${answer.body.expiresAt} instead of ${expiresAt}`,
      )
      return { did, effect: 'done' }
    },
  }),
  verb({
    name: 'transaction',
    weight: 5,
    args: fc.record({
      acks: ackList,
      items: fc.array(items, { maxLength: 2 }),
      required: fc.boolean(),
    }),
    run: transaction,
  }),
  verb({
    name: 'pop with acks',
    weight: 4,
    args: fc.record({ acks: ackList, pop: popArgs }),
    async run(scene, { acks: list, pop: drawn }): Promise<Deed> {
      const { world } = scene
      const all = await acksOf(scene, list)
      const group = all[0]?.delivery.lease.group
      if (group === undefined) return undefined
      // A dead letter that goes to another queue may arrive there before or after the pop.
      const acks = all.filter(
        ({ delivery: { lease }, ending: { status } }) =>
          lease.group === group &&
          (lease.queue.options.deadLetterTo === null ||
            status === 'completed' ||
            status === 'retry'),
      )
      const near = aimed(scene, { ...drawn, group })
      const pop = near.group === group ? near : { ...drawn, group }
      const [path = '', query = ''] = pathOf(scene, pop).split('?')
      const given = Object.fromEntries(new URLSearchParams(query))
      const number = (name: string) => (given[name] === undefined ? undefined : Number(given[name]))
      const answer = await scene.product.call('POST', path, {
        ...given,
        batch: pop.batch,
        partitions: pop.partitions,
        autoAck: pop.autoAck,
        leasePerMessage: isEach(pop),
        leaseSeconds: number('leaseSeconds'),
        acks: acks.map(({ delivery, ending: one, by }) => ackBody(delivery, one, by)),
      })
      mustAnswer(answer, 200)
      endAll(world, acks, answer.body.acks)
      const came = popped(scene, { ...pop, wait: false }, answer)
      return {
        did: `ack ${describeAcks(acks)}, then pop ${path}?${query}: ${came}`,
        effect: 'done',
      }
    },
  }),
]

function liveLeases(world: World, delivery: Delivery) {
  return world.leases.filter(
    ({ id, lockedBy, expiresAt }) =>
      id === delivery.lease.id && lockedBy === undefined && expiresAt > world.now,
  )
}

interface TransactionArgs {
  readonly acks: AckList
  readonly items: Parameters<typeof numbered>[0][]
  readonly required: boolean
}

async function transaction(scene: Scene, args: TransactionArgs): Promise<Deed> {
  const { world, product } = scene
  const acks = await acksOf(scene, args.acks)
  const given = args.items.map(numbered)
  if (acks.length === 0 && given.length === 0) return undefined
  const operations = acks.map(({ delivery, ending: one, by }) => {
    const unfenced = { ...ackBody(delivery, one, 'ids'), leaseId: undefined }
    return JSON.stringify({
      type: 'ack',
      ...(args.required ? unfenced : ackBody(delivery, one, by)),
    })
  })
  if (given.length > 0) operations.push(`{"type":"push",${pushText(scene, given)}}`)
  // If several leases hold messages with the same transactionId, only receipts say which is meant.
  const isOneLease = new Set(acks.map(({ delivery }) => delivery.lease.id)).size === 1
  const leases = args.required
    ? acks.map(({ delivery, by }) =>
        isOneLease && by === 'ids' ? delivery.leaseId : delivery.receipt,
      )
    : []
  const body = `{"operations":[${operations.join(',')}],"requiredLeases":${JSON.stringify(leases)}}`
  const answer = await product.call('POST', '/transaction', body)
  const did = `transaction ${describeAcks(acks)}; push ${given.map((item) => pushText(scene, [item])).join(' ')}`
  // The node finds a required lease by its message, without the group. So if two groups end the same message
  // in one transaction, each ack must name its lease.
  const names = acks.map(({ delivery: { lease, seq, transactionId } }) =>
    args.required
      ? `${lease.partitionId}/${transactionId}`
      : `${lease.id}/${lease.partitionId}/${seq}`,
  )
  const isTwice = new Set(names).size < names.length
  if (isTwice || acks.some(({ delivery }) => !canEnd(world, delivery))) {
    mustAnswer(answer, 409, 'lease_lost')
    return { did: `${did}: lease lost`, effect: 'refused' }
  }
  if (isRefused(scene, given)) {
    mustAnswer(answer, 400)
    return { did: `${did}: priority refused`, effect: 'refused' }
  }
  // The acks take effect before the push.
  const { fates, mustFit, mayFit } = fatesAfter(scene, acks, given)
  if (!mayFit || (answer.status === 429 && !mustFit)) {
    mustAnswer(answer, 429, 'queue_full')
    return { did: `${did}: queue full`, effect: 'refused' }
  }
  mustAnswer(answer, 200)
  const results = answer.body.results as (AckResult & { items?: never[] })[]
  endAll(world, acks, results)
  if (given.length > 0) pushed(scene, given, fates, results.at(-1)?.items ?? [])
  return { did, effect: 'done' }
}

/** Completed messages make room in a queue with a limit; failed ones, and those of other groups, do not. */
function fatesAfter(scene: Scene, acks: readonly Ack[], given: Parameters<typeof fatesOf>[1]) {
  const held = acks.map(({ delivery }) => delivery)
  const gone = acks
    .filter(({ ending: one, delivery }) => isGone(one, delivery))
    .map(({ delivery }) => delivery)
  for (const { lease, seq } of gone) lease.left.delete(seq)
  const fates = fatesOf(scene, given)
  for (const { lease, seq } of held) lease.left.add(seq)
  return fates
}

function isGone({ status }: Ending, { lease, seq }: Delivery): boolean {
  const isBack = lease.partition.lanes.get(lease.group)?.again.has(seq) === true
  const isOver = status !== 'retry' && lease.attempt > retryLimitOf(lease, seq)
  return isBack || status === 'completed' || status === 'dlq' || isOver
}
