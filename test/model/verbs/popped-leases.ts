// The leases of a pop: one per partition, or one per message.
import { must, nameIn, type Scene } from '../verb.ts'
import { isOrdered, type Lease, type Partition, type Queue } from '../world.ts'
import type { PopArgs, PoppedMessage } from './consuming.ts'

export function isEach({ each, autoAck }: Pick<PopArgs, 'each' | 'autoAck'>): boolean {
  return each && !autoAck
}

export function leaseFor(
  { world }: Scene,
  args: PopArgs,
  queue: Queue,
  partition: Partition,
  run: readonly PoppedMessage[],
): Lease {
  const [first] = run as [PoppedMessage]
  const seqs = run.map(({ seq }) => seq)
  const twice = world.leases.find(
    (one) =>
      one.partition === partition &&
      one.group === args.group &&
      seqs.some((seq) => one.left.has(seq)),
  )
  must(
    twice === undefined,
    `${nameIn(queue, partition)} ${seqs.join(' ')} is leased twice to ${args.group}`,
  )
  const lease: Lease = {
    id: leaseIdOf(first.receipt as string),
    queue,
    partition,
    isOrdered: isOrdered(queue.options, partition),
    partitionId: first.partitionId,
    group: args.group,
    from: first.seq,
    left: new Set(seqs),
    attempt: first.attempt,
    expiresAt: world.now + (args.leaseSeconds ?? queue.options.leaseTime) * 1_000,
    isRecorded: queue.options.history === 'all',
    lockedBy: undefined,
  }
  const isShared = isEach(args) && world.leases.some(({ id }) => id === lease.id)
  must(!isShared, `${nameIn(queue, partition)} ${seqs.join(' ')} shares its lease`)
  world.leases.push(lease)
  return lease
}

/** The receipt of a message starts with the id of its lease. */
function leaseIdOf(receipt: string): string {
  const hex = Buffer.from(receipt, 'base64url').toString('hex')
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20, 32),
  ]
  return parts.join('-')
}
