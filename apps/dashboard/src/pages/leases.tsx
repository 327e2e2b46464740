import { useEffect, useState } from 'preact/hooks'
import type { MessageByIdAnswer, MessagesAnswer } from '../api/answers.ts'
import { ask, segment, withQuery } from '../api/client.ts'
import { useData } from '../api/use-data.ts'
import { until } from '../parts/format.ts'
import { type Column, Table } from '../parts/table.tsx'
import { hrefOf } from '../shell/router.ts'

interface Lease {
  readonly id: string
  readonly partition: string | null
  readonly holder: string
  readonly expires: string | null
  readonly attempts: number
}

const shownMax = 20

const columns: readonly Column<Lease>[] = [
  {
    key: 'id',
    title: 'Message',
    width: '2fr',
    cell: ({ id }) => (
      <a class="mono" href={hrefOf('messages', [id])}>
        {id}
      </a>
    ),
  },
  {
    key: 'partition',
    title: 'Partition',
    width: '1fr',
    isExtra: true,
    cell: ({ partition }) => partition ?? '',
  },
  { key: 'holder', title: 'Held by', width: '1.5fr', cell: ({ holder }) => holder },
  {
    key: 'attempt',
    title: 'Attempt',
    width: '5rem',
    isNumber: true,
    isExtra: true,
    cell: ({ attempts }) => attempts,
  },
  {
    key: 'expires',
    title: 'Lease ends',
    width: '7rem',
    isNumber: true,
    cell: ({ expires }) => until(expires),
  },
]

/** The running messages of a group, and who holds them. */
export function LeasesPanel({ queue, group }: { queue: string; group: string }) {
  const path = withQuery('/api/v1/messages', {
    queue,
    consumerGroup: group,
    state: 'leased',
    limit: shownMax,
  })
  const { data } = useData<MessagesAnswer>(path, { everyMs: 5_000 })
  const [leases, setLeases] = useState<readonly Lease[]>([])
  useEffect(() => {
    let isOver = false
    const ids = (data?.messages ?? []).map(({ id }) => id)
    void Promise.all(
      ids.map((id) =>
        ask<MessageByIdAnswer>(`/api/v1/messages/${segment(id)}`).catch(() => undefined),
      ),
    ).then((found) => {
      if (!isOver)
        setLeases(
          found.flatMap((message) => (message === undefined ? [] : leaseOf(message, group))),
        )
    })
    return () => {
      isOver = true
    }
  }, [data, group])
  return (
    <Table
      label="Leases"
      columns={columns}
      rows={leases}
      keyOf={({ id }) => id}
      rowsMax={8}
      empty="No consumer of this group holds a message now."
    />
  )
}

function leaseOf(message: MessageByIdAnswer, group: string): Lease[] {
  const own = message.groups.find((one) => one.consumerGroup === group)
  if (own === undefined || own.state !== 'leased') return []
  const { holder, consumer, leaseExpiresAt: expires, attempts } = own
  const who =
    consumer === null ? (holder ?? 'unknown') : `${consumer} through ${holder ?? 'a node'}`
  return [{ id: message.id, partition: message.partition, holder: who, expires, attempts }]
}
