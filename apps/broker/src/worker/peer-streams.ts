// The streams of events that this worker reads from the other nodes, while it serves streams itself.
//
// They do not use `fetch`: Node 20 opens another connection when a stream ends, and leaves it without a request. The
// drain of the other node would wait for that connection.
import { type ClientRequest, get } from 'node:http'
import { get as getOverTls } from 'node:https'
import type { SentEvent } from '../observe/events/sse.ts'
import { EventReader } from '../observe/events/sse.ts'

export interface PeerStreamsOptions {
  readonly authorization: () => string
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  readonly onEvent: (event: SentEvent) => void
}

interface Peer {
  readonly url: string
  readonly wakes: boolean
  readonly request: ClientRequest
}

/** Longer than the interval of comments that keep a stream open. */
const silentMsMax = 40_000
const pastMsMax = 1_000

export class PeerStreams {
  readonly #options: PeerStreamsOptions
  readonly #peers = new Map<string, Peer>()
  /** The last event of each node, also of those whose stream has ended. */
  readonly #lastAtMs = new Map<string, number>()

  constructor(options: PeerStreamsOptions) {
    this.#options = options
  }

  /** Opens and closes streams. A stream that broke is opened again by the next call. */
  follow(urls: ReadonlyMap<string, string>, wakes: boolean): void {
    for (const [id, peer] of this.#peers) {
      if (urls.get(id) === peer.url && peer.wakes === wakes) continue
      peer.request.destroy()
      this.#peers.delete(id)
    }
    for (const [id, url] of urls) {
      if (this.#peers.has(id)) continue
      const request = this.#open(id, url, wakes)
      this.#peers.set(id, { url, wakes, request })
      // The node is gone, or this one has stopped reading. `rates` names the nodes that do not answer.
      request.on('error', () => {})
      request.once('close', () => {
        if (this.#peers.get(id)?.request === request) this.#peers.delete(id)
      })
    }
    for (const id of this.#lastAtMs.keys()) if (!urls.has(id)) this.#lastAtMs.delete(id)
  }

  stop(): void {
    this.follow(new Map(), false)
  }

  #open(id: string, url: string, wakes: boolean): ClientRequest {
    const { authorization, wallMs, onEvent } = this.#options
    // What happens while the stream is being opened is repeated.
    const sinceMs = this.#lastAtMs.get(id) ?? wallMs()
    const last = `lastEventId=${sinceMs}-0-${encodeURIComponent(id)}`
    const address = `${url}/api/v1/events?scope=node&${last}${wakes ? '&wakes=true' : ''}`
    const options = {
      agent: false,
      timeout: silentMsMax,
      headers: { authorization: authorization() },
    }
    const reader = new EventReader()
    const request = getterFor(url)(address, options, (response) => {
      if (response.statusCode !== 200) return request.destroy()
      return response
        .setEncoding('utf8')
        .on('error', () => {})
        .on('data', (piece: string) => {
          for (const event of reader.read(piece)) {
            this.#lastAtMs.set(id, wallMs())
            onEvent(event)
          }
        })
    })
    return request.once('timeout', () => request.destroy())
  }
}

/** The past events of another node. */
export function readPast(
  url: string,
  sinceMs: number,
  authorization: string,
): Promise<SentEvent[]> {
  const address = `${url}/api/v1/events?scope=node&once=true&lastEventId=${sinceMs}-0-any`
  const options = {
    agent: false,
    headers: { authorization },
    signal: AbortSignal.timeout(pastMsMax),
  }
  const reader = new EventReader()
  const events: SentEvent[] = []
  return new Promise((resolve, reject) => {
    const request = getterFor(url)(address, options, (response) => {
      if (response.statusCode !== 200) {
        reject(new Error(`it answered ${response.statusCode}`))
        return request.destroy()
      }
      return response
        .setEncoding('utf8')
        .on('error', reject)
        .on('data', (piece: string) => events.push(...reader.read(piece)))
        .on('end', () => resolve(events))
    }).on('error', reject)
  })
}

function getterFor(url: string): typeof get {
  return url.startsWith('https:') ? getOverTls : get
}
