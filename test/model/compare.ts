// Compares the product's tables with the model: pending, leased, scheduled, dead and stored messages of every
// group, and what its consumers reported.
import { must, type Scene } from './verb.ts'
import { ageMsMax, freshOf, isExpired, type Partition, type Queue } from './world.ts'

/** One line per fact. */
type Facts = string[]

export async function compare(scene: Scene): Promise<void> {
  const [there, known] = [await factsOfProduct(scene), factsOfModel(scene)]
  const [extra, missing] = [without(there, known), without(known, there)]
  const list = (facts: Facts) => facts.map((fact) => `\n  ${fact}`).join('')
  must(
    extra.length + missing.length === 0,
    `the tables have in addition:${list(extra) || ' nothing'}\nand lack:${list(missing) || ' nothing'}`,
  )
}

/** The facts that `others` does not have. A fact that occurs twice counts twice. */
function without(facts: Facts, others: Facts): Facts {
  const left = [...others]
  return facts.filter((fact) => {
    const at = left.indexOf(fact)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}

function factsOfModel({ world }: Scene): Facts {
  const facts: Facts = []
  for (const queue of world.queues.values()) {
    for (const partition of queue.partitions.values()) {
      const place = `${queue.name}/${partition.name}`
      for (const seq of partition.log.keys()) facts.push(`kept ${place} ${seq}`)
      for (const group of queue.groups) {
        const lane = partition.lanes.get(group)
        const comes = [
          ...freshOf(partition, group).map(({ seq }) => ({ seq, attempts: 0 })),
          ...[...(lane?.again ?? [])].map(([seq, { attempts }]) => ({ seq, attempts })),
        ]
        for (const [seq, { result = null, progress = null }] of lane?.reports ?? []) {
          facts.push(`reported ${place} ${group} ${seq} ${result} ${progress}`)
        }
        for (const [seq, times] of lane?.recorded ?? []) {
          if (seq >= partition.tail) facts.push(`recorded ${place} ${group} ${seq} ${times}`)
        }
        for (const { seq, attempts } of comes) {
          if (!isPassedOver(world.now, queue, partition, group, seq)) {
            facts.push(`pending ${place} ${group} ${seq} after ${attempts}`)
          }
        }
      }
    }
    for (const { group, partition, message, attempts, code } of queue.letters) {
      facts.push(
        `dead ${queue.name}/${partition.name} ${group} ${message.seq} after ${attempts} ${code}`,
      )
    }
  }
  for (const { queue, partition, group, left, attempt, expiresAt } of world.leases) {
    for (const seq of left) {
      facts.push(
        `held ${queue.name}/${partition.name} ${group} ${seq} attempt ${attempt} until ${expiresAt}`,
      )
    }
  }
  for (const { queue, partition, dueAt, message } of world.scheduled) {
    facts.push(`scheduled ${queue}/${partition} ${dueAt} ${message.payload}`)
  }
  return facts
}

/** Whether the message is too old to be delivered: the product skips it when a pop reaches it. */
function isPassedOver(
  now: number,
  queue: Queue,
  partition: Partition,
  group: string,
  seq: number,
): boolean {
  const message = partition.log.get(seq)
  const isOld =
    message === undefined ||
    now - message.createdAt > ageMsMax(queue.options) ||
    isExpired({ now }, message)
  const isFresh = seq >= Math.max(partition.lanes.get(group)?.next ?? 0, partition.tail)
  return isOld && (isFresh || partition.lanes.get(group)?.redriven.has(seq) !== true)
}

const query = `
  with place as (
    select q.name || '/' || p.name as name, q.name as queue, p.name as partition, p.id, p.tail, p.head, q.id as queue_id
    from rouse.queues q join rouse.partitions p on p.queue_id = q.id where q.name like $1
  )
  select 'kept' as kind, queue, partition, null as "group", m.seq, 'kept ' || name || ' ' || m.seq as fact
  from place join rouse.messages m on m.partition_id = place.id
  union all
  select 'pending', queue, partition, g.name, s, 'pending ' || place.name || ' ' || g.name || ' ' || s || ' after 0'
  from place join rouse.groups g on g.queue_id = place.queue_id
  join rouse.lanes l on l.partition_id = place.id and l.group_id = g.id
  cross join lateral generate_series(greatest(l.next, place.tail), place.head - 1) s
  where not rouse.is_cancelled(place.id, s)
  union all
  select 'pending', queue, partition, g.name, r.seq,
    'pending ' || place.name || ' ' || g.name || ' ' || r.seq || ' after ' || r.attempt
  from place join rouse.groups g on g.queue_id = place.queue_id
  join rouse.redeliveries r on r.partition_id = place.id and r.group_id = g.id
  union all
  select 'held', queue, partition, g.name, s.seq, 'held ' || place.name || ' ' || g.name || ' ' || s.seq || ' attempt ' || l.attempt
    || ' until ' || round(extract(epoch from l.expires_at) * 1000)
  from place join rouse.groups g on g.queue_id = place.queue_id
  join rouse.leases l on l.partition_id = place.id and l.group_id = g.id
  cross join lateral unnest(rouse.held_seqs(l.from_seq, l.unacked)) s(seq)
  union all
  select 'dead', queue, partition, g.name, d.seq,
    'dead ' || place.name || ' ' || g.name || ' ' || d.seq || ' after ' || d.attempts || ' ' || coalesce(d.error_code, 'null')
  from place join rouse.dead_letters d on d.partition_id = place.id join rouse.groups g on g.id = d.group_id
  union all
  select 'reported', queue, partition, g.name, r.seq, 'reported ' || place.name || ' ' || g.name || ' ' || r.seq || ' '
    || coalesce(r.result, 'null') || ' ' || coalesce(r.progress, 'null')
  from place join rouse.results r on r.partition_id = place.id join rouse.groups g on g.id = r.group_id
  union all
  select 'recorded', queue, partition, g.name, a.seq, 'recorded ' || place.name || ' ' || g.name || ' ' || a.seq || ' ' || a.times
  from place cross join lateral (
    select a.group_id, a.seq, count(*) as times from rouse.attempts a
    where a.partition_id = place.id and a.seq >= place.tail and a.outcome = 'completed' group by a.group_id, a.seq) a
  join rouse.groups g on g.id = a.group_id
  union all
  select 'scheduled', queue, partition, null, 0,
    'scheduled ' || queue || '/' || partition || ' ' || round(extract(epoch from due_at) * 1000) || ' ' || payload
  from rouse.scheduled where queue like $1`

interface Row {
  readonly kind: string
  readonly queue: string
  readonly partition: string
  readonly group: string | null
  readonly seq: string
  readonly fact: string
}

async function factsOfProduct({ world, product, prefix }: Scene): Promise<Facts> {
  const rows = await product.sql<Row>(query, [`${prefix}%`])
  return rows.filter((row) => row.kind !== 'pending' || !isOld(row)).map(({ fact }) => fact)

  function isOld({ queue: name, partition: part, group, seq }: Row): boolean {
    const queue = world.queues.get(name)
    const partition = queue?.partitions.get(part)
    if (queue === undefined || partition === undefined || group === null) return false
    if (!partition.log.has(Number(seq))) return false
    return isPassedOver(world.now, queue, partition, group, Number(seq))
  }
}

const tables = [
  'queues',
  'groups',
  'partitions',
  'lanes',
  'messages',
  'leases',
  'redeliveries',
  'scheduled',
  'freed',
  'dead_letters',
  'attempts',
  'results',
  'dedup',
  'message_ids',
  'message_options',
  'cancelled',
  'unique_keys',
  'removals',
  'schedules',
]

/** When all queues of a sequence are deleted, nothing of it is left. */
export async function mustBeEmpty({ product }: Scene): Promise<void> {
  // Keys of deleted queues are left to retention.
  await product.sql('select rouse.retain_unique(100000, 0)')
  const counts = tables.map(
    (table) =>
      `(select count(*) from rouse.${table}${table === 'queues' ? " where name <> 'nudge'" : ''})`,
  )
  const [row] = await product.sql<{ counts: string[] }>(
    `select array[${counts.join(', ')}] as counts`,
  )
  const left = tables.filter((_, i) => row?.counts[i] !== '0')
  must(left.length === 0, `rows are left in ${left.join(', ')}`)
}

export async function wipe({ product }: Scene): Promise<void> {
  const names = [...tables, 'redrives', 'traces', 'idle_groups'].map((table) => `rouse.${table}`)
  // With few rows this is much faster than TRUNCATE, and shrinking runs hundreds of sequences.
  await product.sql(names.map((name) => `delete from ${name}`).join('; '))
  await product.sql(`update rouse.chores set next_at = 'infinity'`)
}
