// Delivers dead letters again: first the count, then the redrive with its rate, then its progress.
import { useState } from 'preact/hooks'
import type { Redrive, RedrivePlan } from '../api/answers.ts'
import { type ApiError, ask, segment } from '../api/client.ts'
import { may } from '../api/session.ts'
import { useData } from '../api/use-data.ts'
import { Curl } from '../parts/curl.tsx'
import { Field } from '../parts/fields.tsx'
import { count, plural, time } from '../parts/format.ts'
import { Panel, State } from '../parts/layout.tsx'
import { Failure } from '../parts/notice.tsx'
import { setQuery, useRoute } from '../shell/router.ts'

export interface LetterFilter {
  readonly queue: string
  readonly consumerGroup?: string
  readonly errorCode?: string
  readonly errorMessage?: string
}

export function filterOf(query: Readonly<Record<string, string>>): LetterFilter {
  const { queue = '', group = '', errorCode = '', errorMessage = '' } = query
  return {
    queue,
    ...(group === '' ? {} : { consumerGroup: group }),
    ...(errorCode === '' ? {} : { errorCode }),
    ...(errorMessage === '' ? {} : { errorMessage }),
  }
}

const route = '/api/v1/dead-letters/redrives'

export function RedrivePanel({ filter, onDone }: { filter: LetterFilter; onDone: () => void }) {
  const { queue, ...where } = filter
  const { query } = useRoute()
  const [rate, setRate] = useState('100')
  const [plan, setPlan] = useState<RedrivePlan>()
  const [error, setError] = useState<ApiError>()
  const body = { queue, where, ...(rate === '' ? {} : { rate: Number(rate) }) }
  const send = async <Answer,>(more: object, use: (answer: Answer) => void) => {
    setError(undefined)
    try {
      use(await ask<Answer>(route, { method: 'POST', body: { ...body, ...more } }))
    } catch (failed) {
      setError(failed as ApiError)
    }
  }
  const start = () =>
    send<Redrive>({}, ({ id }) => {
      setPlan(undefined)
      setQuery({ redrive: id })
      onDone()
    })
  return (
    <Panel
      title="Redrive"
      note={`delivers the dead letters of ${queue} that match the filters again`}
    >
      <div class="filters">
        <Field label="Messages per second">
          <input
            type="number"
            name="rate"
            min="1"
            max="100000"
            value={rate}
            onInput={(event) => setRate(event.currentTarget.value)}
          />
        </Field>
        <button type="button" onClick={() => void send<RedrivePlan>({ dryRun: true }, setPlan)}>
          Count (dry run)
        </button>
        <button
          type="button"
          class="primary"
          disabled={plan === undefined || plan.total === 0 || !may('manage', queue)}
          onClick={() => void start()}
        >
          {plan === undefined ? 'Redrive' : `Redrive ${plural(plan.total, 'message')}`}
        </button>
      </div>
      {plan === undefined ? null : <PlanText plan={plan} />}
      {error === undefined ? null : <Failure error={error} />}
      {query.redrive === undefined || query.redrive === '' ? null : <Progress id={query.redrive} />}
      <Curl path={route} method="POST" body={body} />
    </Panel>
  )
}

const lanesShown = 5

function PlanText({ plan: { total, lanes } }: { plan: RedrivePlan }) {
  const shown = lanes
    .slice(0, lanesShown)
    .map(
      (lane) =>
        `${count(lane.count)} of ${lane.partition ?? 'no partition'} for group ${lane.consumerGroup}`,
    )
  const more =
    lanes.length > lanesShown ? ` and ${plural(lanes.length - lanesShown, 'more partition')}` : ''
  return (
    <p class="effect" role="status">
      {plural(total, 'dead letter')} match{total === 1 ? 'es' : ''} now
      {total === 0 ? '.' : `: ${shown.join(', ')}${more}.`}
    </p>
  )
}

function Progress({ id }: { id: string }) {
  const path = `${route}/${segment(id)}`
  const { data, error, reload } = useData<Redrive>(path, { everyMs: 1_000 })
  if (error !== undefined && data === undefined) return <Failure error={error} />
  if (data === undefined) return null
  const { moved, total, state, rate, startedAt } = data
  return (
    <div class="progress" role="status">
      <State of={state} />
      <progress max={Math.max(total, 1)} value={moved} aria-label="Moved messages" />
      <span class="number">
        {count(moved)} of {count(total)}
      </span>
      <span class="muted">
        {rate === null ? 'as fast as possible' : `${count(rate)}/s`}, started {time(startedAt)}
      </span>
      {state === 'running' ? (
        <button
          type="button"
          class="small"
          onClick={() => void ask(path, { method: 'DELETE' }).then(reload, reload)}
        >
          Stop
        </button>
      ) : null}
    </div>
  )
}
