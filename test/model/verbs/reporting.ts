// What holders report about their messages, and leases whose time is set exactly.
import fc from 'fast-check'
import { type Deed, must, mustAnswer, verb } from '../verb.ts'
import { laneOf } from '../world.ts'
import { deliveryFor } from './supplying.ts'

const index = fc.nat(20)
const stale = fc.nat(5).map((number) => number === 0)

export const reporting = [
  verb({
    name: 'report progress',
    weight: 3,
    args: fc.record({ index, stale, progress: fc.constantFrom<unknown>(1, null, { percent: 40 }) }),
    async run(scene, args): Promise<Deed> {
      const { world, product } = scene
      const delivery = await deliveryFor(scene, args.index, args.stale)
      if (delivery === undefined) return undefined
      const { lease, seq, receipt } = delivery
      const id = lease.partition.log.get(seq)?.id
      if (id === undefined) return undefined
      const body = { receipt, progress: args.progress }
      const answer = await product.call('POST', `/messages/${id}/progress`, body)
      const did = `report ${JSON.stringify(args.progress)} about ${seq} of ${lease.group}`
      // The lease is read without a lock, so an open transaction does not matter.
      const holds = world.leases.includes(lease) && lease.left.has(seq)
      if (!holds || lease.expiresAt <= world.now) {
        mustAnswer(answer, 409, 'lease_lost')
        return { did: `${did}: lease lost`, effect: 'refused' }
      }
      mustAnswer(answer, 200)
      const { reports } = laneOf(lease.partition, lease.group)
      reports.set(seq, { ...reports.get(seq), progress: JSON.stringify(args.progress) })
      return { did, effect: 'done' }
    },
  }),
  verb({
    name: 'extend exactly',
    weight: 3,
    args: fc.record({ index, stale, seconds: fc.constantFrom(1, 10, 500) }),
    async run(scene, { seconds, ...args }): Promise<Deed> {
      const { world, product } = scene
      const delivery = await deliveryFor(scene, args.index, args.stale)
      if (delivery === undefined) return undefined
      const { id } = delivery.lease
      const answer = await product.call('POST', `/lease/${id}/extend`, { seconds, exact: true })
      const did = `set the lease of ${delivery.seq} of ${delivery.lease.group} to ${seconds}`
      const leases = world.leases.filter((one) => one.id === id)
      if (leases.reduce((sum, { left }) => sum + left.size, 0) > 1) {
        mustAnswer(answer, 400, 'invalid_request')
        return { did: `${did}: several messages`, effect: 'refused' }
      }
      const [lease] = leases.filter(({ expiresAt }) => expiresAt > world.now)
      if (lease === undefined) {
        mustAnswer(answer, 409, 'lease_lost')
        return { did: `${did}: lease lost`, effect: 'refused' }
      }
      mustAnswer(answer, 200)
      if (lease.lockedBy === undefined) lease.expiresAt = world.now + seconds * 1_000
      const expiresAt = new Date(lease.expiresAt).toISOString()
      const got = answer.body.expiresAt
      must(got === expiresAt, `extended to ${got} instead of ${expiresAt}`)
      return { did, effect: 'done' }
    },
  }),
]
