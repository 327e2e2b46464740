// What a worker asks its primary for: the body of `/stats`, and what `/metrics` and `/api/v1/series` need.
import { RouseError } from '@rouse/protocol'
import type { PrimaryMessage, WorkerMessage } from '../ipc.ts'
import type { NodeMetrics } from '../observe/node-activity.ts'
import type { SeriesRequest, SeriesValues } from '../observe/series/series-store.ts'

type Stats = Readonly<Record<string, unknown>>
export type Answer = Extract<PrimaryMessage, { type: 'stats' | 'metrics' | 'series' }>

/** The primary usually answers in a millisecond. After this time the last answer is used. */
const answerMsMax = 250

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

  answered(answer: Answer): void {
    // A series answers only the request that asked for it.
    if (answer.type !== 'series') this.#last.set(answer.type, answer)
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
      const timeout = setTimeout(() => {
        this.#asked.delete(id)
        const last = this.#last.get(type)
        if (last !== undefined) resolve(last as Wanted)
        else reject(new RouseError('overloaded', 'the primary did not answer in time'))
      }, answerMsMax)
      this.#asked.set(id, (answer) => {
        clearTimeout(timeout)
        resolve(answer as Wanted)
      })
    })
  }
}
