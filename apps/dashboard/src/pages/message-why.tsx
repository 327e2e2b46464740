import type { MessageByIdAnswer, MessageWhy } from '../api/answers.ts'
import { segment } from '../api/client.ts'
import { useData } from '../api/use-data.ts'
import { Curl } from '../parts/curl.tsx'
import { duration, withLocalTimes } from '../parts/format.ts'
import { Panel } from '../parts/layout.tsx'
import { Loaded } from '../parts/notice.tsx'
import { hrefOf } from '../shell/router.ts'

/** Why one message took its time: the share of each cause, and every recorded step. */
export function MessageWhyPanel({ id, message }: { id: string; message: MessageByIdAnswer }) {
  const path = `/api/v1/messages/${segment(id)}/why`
  const why = useData<MessageWhy>(path)
  return (
    <Panel
      title="Why it took this long"
      note={why.data === undefined ? undefined : noteOf(why.data)}
    >
      <Loaded {...why}>
        {(data) => (
          <>
            <p class="culprit">{withLocalTimes(data.summary)}</p>
            {data.culprit === null ? null : (
              <p>
                Longest cause: {data.culprit.cause.replaceAll('_', ' ')}. {data.culprit.action}
              </p>
            )}
            <p>
              <a href={hrefOf('queues', [message.queue])}>
                See the queue, with its limits and consumers
              </a>
            </p>
            <Spans why={data} />
            <Steps why={data} />
            <NotRecorded why={data} />
          </>
        )}
      </Loaded>
      <Curl path={path} />
    </Panel>
  )
}

const recordings = {
  full: 'recorded by the nodes',
  partly: 'a part was recorded by the nodes, the rest is from PostgreSQL',
  none: 'from PostgreSQL alone: nothing was recorded by the nodes',
} as const

function noteOf({ totalMs, recorded, consumerGroup }: MessageWhy): string {
  return `${duration(totalMs)} for group ${consumerGroup}, ${recordings[recorded]}`
}

function Spans({ why: { spans, totalMs } }: { why: MessageWhy }) {
  return (
    <div class="spans">
      {spans.map((span) => (
        <div key={`${span.cause} ${span.from}`} class="span-row">
          <span class="span-name">{span.cause.replaceAll('_', ' ')}</span>
          <span class="span-track">
            <span
              class="span-bar"
              style={{ width: `${Math.max(1, (span.ms / Math.max(totalMs, 1)) * 100)}%` }}
            />
          </span>
          <span class="number">{duration(span.ms)}</span>
          <span class="span-text">{withLocalTimes(span.text)}</span>
        </div>
      ))}
    </div>
  )
}

/** What no node knows: a reader must not take its absence for something that did not happen. */
function NotRecorded({ why: { notRecorded } }: { why: MessageWhy }) {
  if (notRecorded.length === 0) return null
  return (
    <ul class="not-recorded">
      {notRecorded.map(({ text }) => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  )
}

function Steps({ why: { steps } }: { why: MessageWhy }) {
  return (
    <ol class="timeline">
      {steps.map((step, i) => (
        <li key={`${step.at} ${i}`}>
          <time>{step.step}</time>
          <span class="number">+{duration(step.ms)}</span>
          <span>{step.text}</span>
        </li>
      ))}
    </ol>
  )
}
