// A verb is one row of the table: how often it is drawn, its arguments, and what it does. It selects its
// target from what exists when it runs, by numbers that were drawn before, so that a sequence can shrink.
import type fc from 'fast-check'
import { reap } from './delivering.ts'
import type { Answer, Product } from './product.ts'
import {
  type Delivery,
  type Partition,
  type Queue,
  type Scheduled,
  shown,
  type World,
} from './world.ts'

export interface Scene {
  readonly world: World
  readonly product: Product
  /** The prefix of all names, so that sequences do not interfere. */
  readonly prefix: string
  /** A log of the calls so far. */
  readonly lines: string[]
}

/** A description, and whether the call changed anything or was refused; undefined: there was no target. */
export type Deed = { readonly did: string; readonly effect: 'done' | 'refused' } | undefined

export interface Step {
  readonly verb: string
  readonly args: unknown
  readonly run: (scene: Scene) => Promise<Deed>
}

export interface Verb {
  readonly name: string
  readonly weight: number
  readonly steps: fc.Arbitrary<Step>
  /** Makes a step with given arguments instead of drawn ones. */
  readonly stepWith: (args: unknown) => Step
}

export function verb<Args>(row: {
  readonly name: string
  /** How often the verb is drawn, relative to the others. */
  readonly weight: number
  readonly args: fc.Arbitrary<Args>
  readonly run: (scene: Scene, args: Args) => Promise<Deed>
}): Verb {
  const { name, weight, args, run } = row
  const stepWith = (given: Args) => ({
    verb: name,
    args: given,
    run: (scene: Scene) => run(scene, given),
  })
  return {
    name,
    weight,
    steps: args.map(stepWith),
    stepWith: (given) => stepWith(given as Args),
  }
}

export class Mismatch extends Error {
  override readonly name = 'Mismatch'
}

export function must(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Mismatch(what)
}

export function mustAnswer(answer: Answer, status: number, code?: string): void {
  const isRight = answer.status === status && (code === undefined || answer.body?.code === code)
  must(isRight, `expected ${status} ${code ?? ''}, got ${answer.status} ${answer.text}`)
}

/** There are few names, and some occur more often than others, so that calls affect each other. */
export const queueNames = ['a', 'a', 'a', 'b'] as const
export const partitionNames = ['Default', 'Default', 'p'] as const
export const groupNames = [
  '__QUEUE_MODE__',
  '__QUEUE_MODE__',
  '__QUEUE_MODE__',
  'g',
  'g',
  'h',
] as const

export function nameOf({ prefix }: Scene, queue: string): string {
  return `${prefix}${queue}`
}

/** Selects an item by a drawn number; undefined if there are no items. */
export function pick<Item>(items: readonly Item[], number: number): Item | undefined {
  return items[number % items.length]
}

/** A delivery that can still end; with `stale`, any past delivery. */
export function pickDelivery(world: World, number: number, stale: boolean): Delivery | undefined {
  const live = world.deliveries.filter(({ lease, seq }) => {
    return world.leases.includes(lease) && lease.left.has(seq)
  })
  return pick(stale ? world.deliveries : live, number)
}

/** Whether the lease covers the message and nothing blocks an ack. */
export function canEnd(world: World, { lease, seq }: Delivery): boolean {
  return (
    world.leases.includes(lease) &&
    lease.left.has(seq) &&
    lease.lockedBy === undefined &&
    lease.expiresAt > world.now
  )
}

/** Runs background jobs in the product and in the model. */
export async function settle({ world, product }: Scene): Promise<void> {
  const lockedLeases = world.leases
    .filter(({ lockedBy }) => lockedBy !== undefined)
    .map(({ id, partitionId }) => `${id}/${partitionId}`)
  await product.settle(lockedLeases)
  world.settle()
  reap(world)
  await orderMoved(world, product)
  world.settle()
}

/** Leases that expire together move their dead letters in any order: the model takes that of the tables. */
async function orderMoved(world: World, product: Product): Promise<void> {
  const due = world.scheduled.filter(({ dueAt }) => dueAt <= world.now)
  if (due.length < 2) return
  const rows = await product.sql<{ seq: string; headers: string }>(
    `select m.seq, m.headers from rouse.messages m where m.headers = any ($1)`,
    [due.map(({ message }) => message.headers)],
  )
  const seqOf = ({ message }: Scheduled) =>
    Number(rows.find(({ headers }) => headers === message.headers)?.seq)
  const later = world.scheduled.filter(({ dueAt }) => dueAt > world.now)
  const sorted = due.toSorted((a, b) => seqOf(a) - seqOf(b))
  world.scheduled = [...later, ...sorted.map((one) => ({ ...one, order: world.nextOrder() }))]
}

/** Runs background jobs if an ack has moved a dead letter to another queue. */
export async function settleMoved(scene: Scene): Promise<void> {
  const { now, scheduled } = scene.world
  if (scheduled.some(({ dueAt }) => dueAt <= now)) await settle(scene)
}

export function nameIn(queue: Queue, partition: Partition): string {
  return `${queue.name.slice(-1)}/${shown(partition) ?? 'independent'}`
}
