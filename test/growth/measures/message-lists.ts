// A page of messages, by every state and every filter: from the start, and from where another page ended.
import { listMessages, type MessageFilter } from '@rouse/storage'
import type { Measure } from '../support/measure.ts'

const limit = 20
const group = 'g01'
const statuses = [
  undefined,
  'pending',
  'leased',
  'retrying',
  'dead',
  'completed',
  'scheduled',
  'cancelled',
] as const

/** A moment in the two days in which the messages of `hot` were created. */
const hourMs = 3_600_000
const inTime = (): Partial<MessageFilter> => ({
  from: new Date(Date.now() - 30 * hourMs),
  before: new Date(Date.now() - 20 * hourMs),
})

/** Queues with one large partition, with many partitions, with many leases, with cancelled messages, a small one. */
const partitionOf = { hot: 'p0', cold: 'c77', loose: 'p0', ended: 'p0', q00070: 'b' } as const
type Queue = keyof typeof partitionOf
const queues = Object.keys(partitionOf) as readonly Queue[]

const always = (): Partial<MessageFilter> => ({})

function page(
  name: string,
  filter: Partial<MessageFilter> & { readonly queue: Queue },
  after?: readonly string[],
  times = always,
): Measure {
  const { queue, status, partition } = filter
  const place = partition === undefined ? '' : `, partition ${partition}`
  return {
    name: `a page of ${queue} that is ${status ?? 'anything'}${place}${name}`,
    call: (probe) =>
      listMessages(
        probe,
        { partition: undefined, status: undefined, group, limit, ...filter, ...times() },
        after,
      ),
    ...growthOf(filter, times !== always),
  }
}

/** Pages whose cost has a bound, but grows until it is reached. */
function growthOf(
  { queue, status }: Partial<MessageFilter>,
  byTime: boolean,
): Pick<Measure, 'grows'> {
  const isPassedOver =
    (queue === 'ended' && status === 'pending') || (queue === 'loose' && status === 'completed')
  if (isPassedOver)
    return { grows: { why: 'it passes over up to 4,000 messages', pagesMax: () => 4_000 * 5 } }
  if (queue === 'loose') {
    const pagesMax = ({ loose }: { readonly loose: number }) => 600 + loose / 5
    return { grows: { why: 'it reads the leases of the partition', pagesMax } }
  }
  if (queue === 'cold' && status !== 'scheduled') {
    const pagesMax = () => 500 * (byTime ? 30 : 10)
    return { grows: { why: 'it visits up to 500 partitions', pagesMax } }
  }
  return {}
}

function byQueue(queue: Queue): Measure[] {
  const partition = partitionOf[queue]
  return statuses.flatMap((status) => {
    const one = { queue, status }
    return [
      page('', one),
      page('', { ...one, partition }),
      page(', by time', one, undefined, inTime),
      page(', by time', { ...one, partition }, undefined, inTime),
      ...(status === 'retrying' || status === 'dead'
        ? [
            page(', by error', { ...one, errorCode: 'code1' }),
            page(', by an unknown error', { ...one, errorCode: 'none', partition }),
          ]
        : []),
    ]
  })
}

/** Pages that return all they look at cost no more than their messages. */
const exact: readonly Measure[] = [
  page(', in the middle', { queue: 'hot' }, ['log', 'p0', '9000']),
  page(', in the middle', { queue: 'hot', status: 'completed' }, ['log', 'p0', '9000']),
  page(', at the end', { queue: 'hot', status: 'pending' }, ['log', 'p0', '9990']),
  page(', in the middle', { queue: 'cold' }, ['log', 'c5', '3']),
  page(', after the log', { queue: 'hot' }, ['scheduled']),
  page(', in the middle', { queue: 'hot', status: 'scheduled' }, ['scheduled', 'p0', '0', '7']),
  page(', in the middle', { queue: 'cold', status: 'scheduled' }, ['scheduled', 'c5', '0', '7']),
  page(', after the log', { queue: 'ended', status: 'cancelled' }, ['cancelled']),
]

export const messageLists: readonly Measure[] = [...queues.flatMap(byQueue), ...exact]
