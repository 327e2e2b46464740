// What a worker asks its primary for: the body of `/stats`, and what `/metrics`, `/api/v1/series` and
// `/api/v1/events` need.
import { RouseError } from '@rouse/protocol'
import type { PrimaryMessage, WorkerMessage } from '../ipc.ts'
import type { PastEvents } from '../observe/events/node-event.ts'
import type { NodeMetrics } from '../observe/node-activity.ts'
import type { SeriesRequest, SeriesValues } from '../observe/series/series-store.ts'
import type { NodeTraces, TraceRequest } from '../observe/why/trace-record.ts'

type Stats = Readonly<Record<string, unknown>>
export type Answer = Extract<
  PrimaryMessage,
  { type: 'stats' | 'metrics' | 'series' | 'pastEvents' | 'traces' }
>

/** The primary usually answers in a millisecond. After this time the last answer is used. */
const answerMsMax = 250
/**
 * The limit for answers that an earlier answer cannot replace. For traces the primary first asks its workers.
 */
const ownAnswerMsMax = 2_000

export class PrimaryQuestions {
  readonly #post: (question: WorkerMessage) => void
  readonly #asked = new Map<number, (answer: Answer) => void>()
  readonly #last = new Map<Answer['type'], Answer>()
  #lastId = 0

  constructor(post: (question: WorkerMessage) => void) {
    this.#post = post
  }

  async stats(): Promise<Stats> {
    const answer = await this.#ask('stats', (id) => ({ type: 'askStats', id, of: 'node' }))
    return answer.stats
  }

  async metrics(): Promise<NodeMetrics> {
    const answer = await this.#ask('metrics', (id) => ({ type: 'askStats', id, of: 'metrics' }))
    return answer.metrics
  }

  async series(request: SeriesRequest): Promise<SeriesValues> {
    const answer = await this.#ask('series', (id) => ({ type: 'askSeries', id, request }))
    return answer.series
  }

  async pastEvents(sinceMs: number): Promise<PastEvents> {
    const answer = await this.#ask('pastEvents', (id) => ({ type: 'askEvents', id, sinceMs }))
    return answer.past
  }

  async traces(request: TraceRequest): Promise<NodeTraces> {
    const answer = await this.#ask('traces', (id) => ({ type: 'askTraces', id, request }))
    return answer.traces
  }

  answered(answer: Answer): void {
    // The others answer only the request that asked for them.
    if (answer.type === 'stats' || answer.type === 'metrics') this.#last.set(answer.type, answer)
    this.#asked.get(answer.id)?.(answer)
    this.#asked.delete(answer.id)
  }

  #ask<Type extends Answer['type']>(
    type: Type,
    question: (id: number) => WorkerMessage,
  ): Promise<Extract<Answer, { type: Type }>> {
    type Wanted = Extract<Answer, { type: Type }>
    this.#lastId += 1
    const id = this.#lastId
    this.#post(question(id))
    return new Promise((resolve, reject) => {
      const timeout = setTimeout(
        () => {
          this.#asked.delete(id)
          const last = this.#last.get(type)
          if (last !== undefined) resolve(last as Wanted)
          else reject(new RouseError('overloaded', 'the primary did not answer in time'))
        },
        type === 'stats' || type === 'metrics' ? answerMsMax : ownAnswerMsMax,
      )
      this.#asked.set(id, (answer) => {
        clearTimeout(timeout)
        resolve(answer as Wanted)
      })
    })
  }
}
