// A verb is a row of the table: how often it is drawn, with what, and what it does. It picks what it works on out of what is
// there when it runs, by numbers that were drawn before, so that a sequence can shrink.
import type fc from 'fast-check'
import { reap } from './delivering.ts'
import type { Answer, Product } from './product.ts'
import type { Delivery, Partition, Queue, World } from './world.ts'

export interface Scene {
  readonly world: World
  readonly product: Product
  /** In front of all names, so that sequences do not meet. */
  readonly prefix: string
  /** What was done so far, in words. */
  readonly lines: string[]
}

/** In words, and whether it changed anything or was refused; undefined: there was nothing to do it to. */
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
  /** With arguments that were not drawn. */
  readonly stepWith: (args: unknown) => Step
}

export function verb<Args>(row: {
  readonly name: string
  /** How often it is drawn, beside the others. */
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

/** Few, and some of them more often than others, so that commands meet. */
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

/** One of them, by a number that was drawn for it; undefined of none. */
export function pick<Item>(items: readonly Item[], number: number): Item | undefined {
  return items[number % items.length]
}

/** One of the deliveries that can still end; where `stale` says so, any that ever was. */
export function pickDelivery(world: World, number: number, stale: boolean): Delivery | undefined {
  const live = world.deliveries.filter(({ lease, seq }) => {
    return world.leases.includes(lease) && lease.left.has(seq)
  })
  return pick(stale ? world.deliveries : live, number)
}

/** Whether the lease holds the message and nothing keeps an acknowledgement out. */
export function canEnd(world: World, { lease, seq }: Delivery): boolean {
  return (
    world.leases.includes(lease) &&
    lease.left.has(seq) &&
    lease.lockedBy === undefined &&
    lease.expiresAt > world.now
  )
}

/** What nodes do by themselves is done, in the product and in the model. */
export async function settle({ world, product }: Scene): Promise<void> {
  const lockedLeases = world.leases
    .filter(({ lockedBy }) => lockedBy !== undefined)
    .map(({ id, partitionId }) => `${id}/${partitionId}`)
  await product.settle(lockedLeases)
  world.settle()
  reap(world)
}

export function nameIn(queue: Queue, partition: Partition): string {
  return `${queue.name.slice(-1)}/${partition.name}`
}
