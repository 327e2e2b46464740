import { useMemo } from 'preact/hooks'
import type { QueueFigures, SeriesAnswer, WhyAnswer } from '../api/answers.ts'
import { ask, segment, withQuery } from '../api/client.ts'
import { readQueues } from '../api/queue-list.ts'
import { may } from '../api/session.ts'
import { useData } from '../api/use-data.ts'
import { ActionButton } from '../parts/action.tsx'
import { Chart } from '../parts/chart.tsx'
import { type Confirmation, useConfirm } from '../parts/confirm.tsx'
import { FilterChoice } from '../parts/fields.tsx'
import { count, duration, plural, rate } from '../parts/format.ts'
import { Figure, Page, Panel, State } from '../parts/layout.tsx'
import { Loaded, Loading } from '../parts/notice.tsx'
import { goTo, hrefOf, useRoute } from '../shell/router.ts'
import { lastOf, MissingNodes } from './overview.tsx'
import { PushPanel } from './push-panel.tsx'
import { OptionsPanel } from './queue-options.tsx'
import { PartitionsPanel } from './queue-partitions.tsx'
import { WhyPanel } from './why-panel.tsx'

export function QueuePage({ queue }: { queue: string }) {
  const path = `/api/v1/queues/${segment(queue)}`
  const figures = useData<QueueFigures>(path)
  const why = useData<WhyAnswer>(`${path}/why`)
  const reload = () => {
    figures.reload()
    why.reload()
    readQueues()
  }
  const { confirm, dialog } = useConfirm(reload)
  const isMissing = figures.data === undefined && figures.error?.status === 404
  return (
    <Page
      title={queue}
      note={<QueueLinks queue={queue} />}
      actions={
        figures.data === undefined ? null : (
          <QueueActions figures={figures.data} confirm={confirm} onDone={reload} />
        )
      }
      curl={{ path: `${path}/why` }}
    >
      <Loaded {...figures}>{(data) => <QueueNumbers figures={data} />}</Loaded>
      {isMissing ? null : (
        <>
          <WhyPanel queue={queue} {...why} confirm={confirm} onDone={reload} />
          <SeriesPanel queue={queue} />
        </>
      )}
      {why.data === undefined ? null : <PartitionsPanel queue={queue} />}
      {figures.data === undefined ? null : (
        <>
          <OptionsPanel
            key={JSON.stringify(figures.data.options)}
            figures={figures.data}
            onDone={reload}
          />
          <PushPanel queue={queue} onPushed={reload} />
        </>
      )}
      {dialog}
    </Page>
  )
}

function QueueLinks({ queue }: { queue: string }) {
  return (
    <span class="links">
      <a href={hrefOf('messages', [], { queue })}>Messages</a>
      <a href={hrefOf('dead-letters', [], { queue })}>Dead letters</a>
      <a href={hrefOf('groups', [], { queue })}>Groups</a>
    </span>
  )
}

function QueueNumbers({ figures }: { figures: QueueFigures }) {
  const { dead } = figures
  return (
    <div class="figures">
      <div class="figure">
        <span class="figure-label">State</span>
        <State of={figures.state} />
      </div>
      <Figure label="Ready" value={count(figures.ready)} />
      <Figure label="Running" value={count(figures.leased)} />
      <Figure label="Retrying" value={count(figures.retrying)} />
      <Figure label="Scheduled" value={count(figures.scheduled)} />
      <Figure label="Dead letters" value={count(dead)} tone={dead > 0 ? 'warn' : undefined} />
      <Figure label="Consumers" value={count(figures.consumers)} />
      <Figure label="In" value={rate(figures.pushedPerSecond)} unit="/s" />
      <Figure label="Out" value={rate(figures.completedPerSecond)} unit="/s" />
      <Figure label="Oldest" value={duration(figures.oldestAgeMs)} />
    </div>
  )
}

function QueueActions({
  figures,
  confirm,
  onDone,
}: {
  figures: QueueFigures
  confirm: (confirmation: Confirmation) => void
  onDone: () => void
}) {
  const { queue, paused } = figures
  const path = `/api/v1/queues/${segment(queue)}`
  const isAllowed = may('manage', queue)
  const needs = `manage:${queue}`
  const change = paused ? 'resume' : 'pause'
  return (
    <>
      <ActionButton
        run={() => ask(`${path}/${change}`, { method: 'POST' })}
        onDone={onDone}
        isAllowed={isAllowed}
        needs={needs}
      >
        {paused ? 'Resume' : 'Pause'}
      </ActionButton>
      <button type="button" disabled={!isAllowed} onClick={() => confirm(purgeOf(figures))}>
        Purge …
      </button>
      <button
        type="button"
        class="danger"
        disabled={!isAllowed}
        onClick={() => confirm(deletionOf(figures))}
      >
        Delete …
      </button>
    </>
  )
}

function purgeOf({ queue }: QueueFigures): Confirmation {
  const path = `/api/v1/queues/${segment(queue)}/purge`
  return {
    title: 'Purge the queue',
    action: 'Purge',
    name: queue,
    call: { path, method: 'POST' },
    dryRun: () => contentsOf(queue),
    run: () => ask(path, { method: 'POST' }),
    children: (
      <p>Deletes all messages, also scheduled and leased ones. The queue and its options stay.</p>
    ),
  }
}

function deletionOf({ queue }: QueueFigures): Confirmation {
  const path = `/api/v1/queues/${segment(queue)}`
  return {
    title: 'Delete the queue',
    action: 'Delete queue',
    name: queue,
    call: { path, method: 'DELETE' },
    dryRun: () => contentsOf(queue),
    run: async () => {
      await ask(path, { method: 'DELETE' })
      goTo(hrefOf('queues'))
    },
    children: (
      <p>
        Deletes the queue with its messages, groups and dead letters. The next push creates an empty
        one.
      </p>
    ),
  }
}

/** Counted now, not when the page was read. */
async function contentsOf(queue: string): Promise<string> {
  const { ready, leased, retrying, scheduled, dead } = await ask<QueueFigures>(
    `/api/v1/queues/${segment(queue)}`,
  )
  return (
    `This affects ${plural(ready, 'ready message')}, ${count(leased)} running, ${count(retrying)} retrying, ` +
    `${count(scheduled)} scheduled and ${plural(dead, 'dead letter')}.`
  )
}

const spans: Readonly<Record<string, number>> = { '': 600_000, hour: 3_600_000, day: 86_400_000 }

function SeriesPanel({ queue }: { queue: string }) {
  const { query } = useRoute()
  const span = query.span ?? ''
  const resolution = span === 'day' ? 'minute' : 'second'
  const { data, error } = useData<SeriesAnswer>(withQuery('/api/v1/series', { queue, resolution }))
  const chart = useMemo(
    () => (data === undefined ? undefined : lastOf(data, spans[span] ?? 600_000)),
    [data, span],
  )
  return (
    <Panel
      title="Throughput"
      note="messages per second"
      actions={
        <FilterChoice
          name="span"
          label="Time"
          choices={[
            ['', '10 minutes'],
            ['hour', '1 hour'],
            ['day', '1 day'],
          ]}
        />
      }
    >
      {chart === undefined ? (
        error === undefined ? (
          <Loading />
        ) : (
          <p class="muted">{error.message}</p>
        )
      ) : (
        <>
          <Chart label={`Pushed and completed messages per second of ${queue}`} {...chart} />
          <MissingNodes series={data} />
        </>
      )}
    </Panel>
  )
}
