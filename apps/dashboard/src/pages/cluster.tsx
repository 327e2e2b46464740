import { useCallback, useState } from 'preact/hooks'
import type { ClusterStats, NodeStats, Peer } from '../api/answers.ts'
import { useEvents } from '../api/live.ts'
import { useCluster } from '../api/use-cluster.ts'
import { cutOff, wordsOf } from '../attention.ts'
import { count, duration, plural, time } from '../parts/format.ts'
import { Page, Panel, State } from '../parts/layout.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { WakeMap } from '../wake-map/wake-map.tsx'

export function ClusterPage() {
  const cluster = useCluster()
  return (
    <Page
      title="Cluster"
      note={cluster.data === undefined ? '' : `Answered by ${cluster.data.node}.`}
      curl={{ path: '/stats?scope=cluster' }}
    >
      <Loaded {...cluster}>
        {(data) => (
          <>
            <FaultsPanel cluster={data} />
            <NodesPanel cluster={data} />
            <WakeMap nodes={data.nodes} unreachable={data.unreachable} />
            <WakesPanel nodes={data.nodes} />
            <PeersPanel nodes={data.nodes} />
          </>
        )}
      </Loaded>
      <EventsPanel />
    </Page>
  )
}

const whys: Readonly<Record<string, string>> = {
  peer_silent:
    'gossip with a peer fails. Check UDP between the nodes, ROUSE_GOSSIP_ADVERTISE and ROUSE_GOSSIP_SECRET.',
  listener_lost: 'the LISTEN connection is lost. Check ROUSE_LISTEN_URL and PostgreSQL.',
  sidecar_lost: 'a worker was lost. The log of the node says why.',
  grant_untaken:
    'a worker did not pop in time. Its process or PostgreSQL is overloaded: see event-loop delay and SQL time.',
}

/** What is wrong, and the action that ends it. */
function FaultsPanel({ cluster: { nodes, unreachable } }: { cluster: ClusterStats }) {
  const cut = cutOff(nodes)
  const strained = nodes.filter(({ mode }) => mode.mode === 'aggressive')
  if (cut.length + unreachable.length + strained.length === 0) return null
  return (
    <Panel title="Faults">
      <ul class="attention">
        {unreachable.map(({ id, error, state }) => (
          <li key={id} class="bad">
            <span>
              Node {id} does not answer: {error}.{' '}
              {state === 'alive'
                ? 'It still sends gossip: it is overloaded, or its ROUSE_ADVERTISE_URL is wrong.'
                : 'Its leases expire and its messages go to other consumers. Start it again; its log says why it ended.'}
            </span>
          </li>
        ))}
        {cut.map(([from, to]) => (
          <li key={`${from} ${to}`} class="bad">
            <span>
              Node {to} is cut off from {from}: it writes to the database, but no datagram arrives.
              Open UDP between them, or correct ROUSE_GOSSIP_ADVERTISE and ROUSE_GOSSIP_SECRET.
              Until then {from} polls.
            </span>
          </li>
        ))}
        {strained.map(({ node, mode }) => (
          <li key={node} class="warn">
            <span>
              Node {node} polls at short intervals since {time(mode.since)}:{' '}
              {mode.why.map((why) => whys[why] ?? wordsOf(why)).join(' ') ||
                'it leaves this mode when polls find nothing for a while.'}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

type Row =
  | (NodeStats & { readonly isGone?: undefined })
  | { readonly isGone: true; readonly node: string; readonly url?: string | null | undefined }

const columns: readonly Column<Row>[] = [
  { key: 'node', title: 'Node', width: '1fr', cell: ({ node }) => <strong>{node}</strong> },
  {
    key: 'mode',
    title: 'Mode',
    width: '7rem',
    cell: (row) => <State of={row.isGone === true ? 'unreachable' : row.mode.mode} />,
  },
  figure('workers', 'Workers', (row) => count(row.workers)),
  figure('restarts', 'Restarts', (row) => count(row.worker_restarts), true),
  figure('waiting', 'Waiters', (row) => count(row.waiting.total)),
  figure('requests', 'Requests', (row) => count(row.requests), true),
  figure(
    'peers',
    'Peers',
    (row) => `${row.peers.filter(({ state }) => state === 'alive').length} of ${row.peers.length}`,
    true,
  ),
  figure('uptime', 'Up', (row) => duration(row.uptime * 1_000), true),
  {
    key: 'url',
    title: 'Address',
    width: '1.2fr',
    isExtra: true,
    cell: ({ url }) => <code>{url ?? ''}</code>,
  },
  {
    key: 'version',
    title: 'Version',
    width: '5rem',
    isExtra: true,
    cell: (row) => (row.isGone === true ? '' : (row.version ?? '')),
  },
]

function figure(
  key: string,
  title: string,
  show: (row: NodeStats) => string,
  isExtra = false,
): Column<Row> {
  return {
    key,
    title,
    width: '4.4rem',
    isNumber: true,
    isExtra,
    cell: (row) => (row.isGone === true ? '–' : show(row)),
  }
}

function NodesPanel({ cluster: { nodes, unreachable } }: { cluster: ClusterStats }) {
  const rows: Row[] = [
    ...nodes,
    ...unreachable.map(({ id, url }): Row => ({ isGone: true, node: id, url })),
  ].toSorted((a, b) => (a.node < b.node ? -1 : 1))
  return (
    <Panel title="Nodes" note={plural(rows.length, 'node')}>
      <Table
        label="Nodes"
        columns={columns}
        rows={rows}
        keyOf={({ node }) => node}
        rowsMax={16}
        empty=""
      />
    </Panel>
  )
}

const sources = {
  local: 'a push through the same worker',
  ipc: 'a push through another worker of the node',
  udp: 'a hint from another node',
  notify: 'an SQL producer',
  timer: 'a due time or an expired lease',
  chain: 'messages that an earlier pop left',
  fallback: 'a poll without a hint',
} as const

function WakesPanel({ nodes }: { nodes: readonly NodeStats[] }) {
  const sum = (source: keyof typeof sources) =>
    nodes.reduce((all, { wakes }) => all + wakes[source], 0)
  const rows = (Object.keys(sources) as (keyof typeof sources)[]).map((source) => {
    const latencies = nodes.map(({ wake_latency: latency }) => latency[source])
    const samples = latencies.reduce((all, one) => all + one.count, 0)
    const meanMs =
      samples === 0 ? undefined : latencies.reduce((all, one) => all + one.sumMs, 0) / samples
    return { source, count: sum(source), meanMs }
  })
  const most = Math.max(...rows.map((row) => row.count), 1)
  return (
    <Panel
      title="Wake-ups by source"
      note="since the nodes started, and the mean time from the hint to the found message"
    >
      <div class="spans">
        {rows.map((row) => (
          <div key={row.source} class="span-row">
            <span class="span-name">{row.source}</span>
            <span class="span-track">
              <span class="span-bar" style={{ width: `${(row.count / most) * 100}%` }} />
            </span>
            <span class="number">{count(row.count)}</span>
            <span class="span-text">
              {sources[row.source]}
              {row.meanMs === undefined ? '' : `: ${duration(row.meanMs)}`}
            </span>
          </div>
        ))}
      </div>
    </Panel>
  )
}

function PeersPanel({ nodes }: { nodes: readonly NodeStats[] }) {
  const rows = nodes.flatMap(({ node, peers }) => peers.map((peer) => ({ node, peer })))
  return (
    <Panel title="Peers" note="how each node sees the others by gossip">
      {rows.length === 0 ? (
        <Empty title="One node">
          Start another node on the same database, and they find each other.
        </Empty>
      ) : (
        <ul class="peers">
          {rows.map(({ node, peer }) => (
            <li key={`${node} ${peer.id}`}>
              <strong>{node}</strong> sees {peer.id} <State of={peer.state} /> {peerText(peer)}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

function peerText({ hearsUs, heardAgoMs, hintsSent, hintsReceived }: Peer): string {
  return [
    hearsUs === false ? 'which does not receive its datagrams' : '',
    heardAgoMs === undefined ? '' : `heard ${duration(heardAgoMs)} ago`,
    hintsSent === undefined ? '' : `${count(hintsSent)} hints sent`,
    hintsReceived === undefined ? '' : `${count(hintsReceived)} received`,
  ]
    .filter((part) => part !== '')
    .join(', ')
}

interface ClusterEvent {
  readonly at: string
  readonly text: string
  readonly change: string
}

const eventsMax = 50

/** What happened since the page was opened. */
function EventsPanel() {
  const [events, setEvents] = useState<readonly ClusterEvent[]>([])
  const received = useCallback((event: Readonly<Record<string, unknown>>) => {
    setEvents((last) => [event as unknown as ClusterEvent, ...last].slice(0, eventsMax))
  }, [])
  useEvents('cluster', received)
  useEvents('queue', received)
  return (
    <Panel title="Events" note="since this page was opened">
      {events.length === 0 ? (
        <Empty title="Nothing has happened yet." />
      ) : (
        <ol class="timeline">
          {events.map(({ at, text, change }, i) => (
            <li key={`${at} ${i}`}>
              <time>{time(at)}</time>
              <span class="muted">{change.replaceAll('_', ' ')}</span>
              <span>{text}</span>
            </li>
          ))}
        </ol>
      )}
    </Panel>
  )
}
