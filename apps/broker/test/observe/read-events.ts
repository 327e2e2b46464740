import { eventually } from '@rouse/testkit'
import type { Test } from 'tap'
import { EventReader } from '../../src/observe/events/sse.ts'

export interface ReadEvent {
  readonly id: string | undefined
  readonly name: string
  // biome-ignore lint/suspicious/noExplicitAny: every event has its own fields
  readonly data: any
}

export interface ReadStream {
  readonly status: number
  readonly headers: Headers
  readonly events: ReadEvent[]
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>
  /** Resolves with the first event of this name that fits. */
  next(name: string, fits?: (data: ReadEvent['data']) => boolean): Promise<ReadEvent>
  close(): void
}

/** Opens `GET /api/v1/events` and collects what comes. */
export async function readEvents(
  t: Test,
  url: string,
  query = '',
  headers: Readonly<Record<string, string>> = {},
): Promise<ReadStream> {
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const response = await fetch(`${url}/api/v1/events${query}`, { signal: stop.signal, headers })
  const events: ReadEvent[] = []
  const reader = new EventReader()
  const read = async () => {
    try {
      if (response.body === null) return
      for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
        for (const { id, name, data } of reader.read(piece)) {
          events.push({ id, name, data: JSON.parse(data) })
        }
      }
    } catch {
      // The test or the server cut the connection.
    }
  }
  const ended = read()
  return {
    status: response.status,
    headers: response.headers,
    events,
    ended,
    close: () => stop.abort(),
    async next(name, fits = () => true) {
      const find = () => events.find((one) => one.name === name && fits(one.data))
      await eventually(() => find() !== undefined, { timeoutMs: 20_000 })
      return find() as ReadEvent
    },
  }
}
