// The streams of events that one worker serves. Events of this node come from its primary; those of other nodes come
// from streams that this worker reads, and rates from `/stats` of every node. Without a stream of its own, a
// worker asks for nothing.
import { RouseError } from '@rouse/protocol'
import { askingAs, askPeers, clusterStats, reachablePeers } from '../cluster/cluster-stats.ts'
import type { Outbox, WorkerMessage } from '../ipc.ts'
import {
  type ClusterView,
  groupsOf,
  ratesOf,
  statesOf,
  viewOf,
} from '../observe/events/cluster-view.ts'
import { eventId, type NodeEvent, type PastEvents } from '../observe/events/node-event.ts'
import type { SentEvent } from '../observe/events/sse.ts'
import type { BrokerContext } from './context.ts'
import { type EventStream, keepAliveMs } from './event-stream.ts'
import { PeerStreams, readPast } from './peer-streams.ts'
import { QueueWatch } from './queue-watch.ts'

export interface EventHubOptions {
  readonly node: string
  readonly outbox: Outbox<WorkerMessage>
  readonly context: Pick<BrokerContext, 'stats' | 'queueList' | 'clock'>
  readonly nodeAuthorization: () => string
  readonly past: (sinceMs: number) => Promise<PastEvents>
}

const streamsMax = 200
/** The maximum for one principal, so that it does not take the streams of all others. */
const streamsPerOwnerMax = 50
const tickMs = 1_000
/** A timer that fires a little early is not followed by another one at once. */
const pauseMsMin = 200
/** Ids of events that came from other nodes: a stream that is opened again repeats some. */
const seenMax = 2_000

export class EventHub {
  readonly #options: EventHubOptions
  readonly #streams = new Set<EventStream>()
  readonly #peers: PeerStreams
  readonly #seen = new Set<string>()
  readonly #queues = new QueueWatch()
  #watched = { events: false, wakes: false }
  #timer: NodeJS.Timeout | undefined
  #view: ClusterView | undefined
  #number = 0
  #isDraining = false

  constructor(options: EventHubOptions) {
    this.#options = options
    this.#peers = new PeerStreams({
      authorization: options.nodeAuthorization,
      wallMs: options.context.clock.wallMs,
      onEvent: (event) => this.#fromPeer(event),
    })
  }

  /** Throws if this worker serves too many streams, or too many of this principal. */
  checkRoom(owner: string): void {
    if (this.#isDraining) throw new RouseError('overloaded', 'this node is draining')
    const own = [...this.#streams].filter(({ options }) => options.owner === owner).length
    if (this.#streams.size < streamsMax && own < streamsPerOwnerMax) return
    const problem =
      own < streamsPerOwnerMax
        ? `this worker serves ${streamsMax} streams of events already`
        : `this worker serves ${streamsPerOwnerMax} streams of events for this credential already`
    throw new RouseError('overloaded', problem)
  }

  /** Serves a stream until it ends. `sinceMs`: the time of the last event that its client has. */
  async open(stream: EventStream, sinceMs: number | undefined): Promise<void> {
    const { node, context } = this.#options
    const { scope, once, filter } = stream.options
    this.#streams.add(stream)
    this.#update()
    const stats = await context.stats()
    const nodes = filter.seesNodes ? [node, ...reachablePeers(stats).keys()].sort() : [node]
    stream.sendFirst('hello', JSON.stringify({ node, nodes, keepAliveMs }))
    if (sinceMs !== undefined) await this.#sendPast(stream, sinceMs, stats)
    stream.pastIsSent()
    if (scope === 'node') {
      if (once) stream.end('complete')
      return
    }
    await this.#tickNow(stats)
  }

  closed(stream: EventStream): void {
    this.#streams.delete(stream)
    this.#update()
  }

  received(events: readonly NodeEvent[]): void {
    for (const event of events) this.#send(event, 'node')
  }

  /** Ends all streams. Idempotent. */
  stop(): void {
    this.#isDraining = true
    for (const stream of this.#streams) stream.end('draining')
    this.#streams.clear()
    this.#update()
  }

  /** Starts and stops what the open streams need. */
  #update(): void {
    const all = [...this.#streams].map(({ options }) => options)
    const watched = { events: all.length > 0, wakes: all.some(({ wakes }) => wakes) }
    if (watched.events !== this.#watched.events || watched.wakes !== this.#watched.wakes) {
      this.#watched = watched
      this.#options.outbox.post({ type: 'watchEvents', ...watched })
    }
    if (watched.events) this.#timer ??= this.#planTick()
    else {
      clearTimeout(this.#timer)
      this.#timer = undefined
    }
    if (all.every(({ scope }) => scope === 'node')) {
      this.#peers.stop()
      this.#queues.clear()
      this.#view = undefined
    }
  }

  /** In the middle of each second: workers report their counts when it begins. A late tick does not delay the next one. */
  #planTick(): NodeJS.Timeout {
    const leftMs = tickMs - ((this.#options.context.clock.wallMs() + tickMs / 2) % tickMs)
    return setTimeout(
      () => {
        this.#timer = this.#planTick()
        void this.#tick()
      },
      leftMs < pauseMsMin ? leftMs + tickMs : leftMs,
    )
  }

  async #tick(): Promise<void> {
    const nowMs = this.#options.context.clock.nowMs()
    for (const stream of this.#streams) stream.keepAlive(nowMs)
    if (this.#isForCluster())
      await this.#options.context.stats().then(
        (stats) => this.#tickNow(stats),
        () => {},
      )
  }

  #isForCluster(): boolean {
    return [...this.#streams].some(({ options }) => options.scope === 'cluster')
  }

  async #tickNow(stats: Readonly<Record<string, unknown>>): Promise<void> {
    const { context, nodeAuthorization } = this.#options
    if (this.#isForCluster()) this.#peers.follow(reachablePeers(stats), this.#watched.wakes)
    const [cluster, snapshot] = await Promise.all([
      clusterStats(stats, askingAs(nodeAuthorization)),
      context.queueList.all().catch(() => undefined),
    ])
    const figures = snapshot?.queues.map((one) => one.figures)
    this.#view = viewOf(cluster, figures, context.clock.wallMs())
    this.#sendView(this.#view)
  }

  #sendView(view: ClusterView): void {
    const { node, context } = this.#options
    const atMs = context.clock.wallMs()
    this.#number += 1
    const id = eventId(atMs, this.#number, `${node}.rates`)
    if (view.figures !== undefined) this.#sendQueueChanges(view, atMs)
    let forAll: string | undefined
    for (const stream of this.#streams) {
      const { filter, scope, groups, once } = stream.options
      if (scope === 'node') continue
      const json = filter.isAll
        ? (forAll ??= JSON.stringify(ratesOf(view, filter)))
        : JSON.stringify(ratesOf(view, filter))
      stream.send('rates', json, id)
      if (groups) stream.send('groups', JSON.stringify(groupsOf(view, filter)))
      if (once) stream.end('complete')
    }
  }

  #sendQueueChanges(view: ClusterView, atMs: number): void {
    const { node } = this.#options
    for (const { queue, ...change } of this.#queues.changes(statesOf(view), atMs)) {
      this.#number += 1
      const at = new Date(atMs).toISOString()
      const json = JSON.stringify({ at, node, queue, ...change })
      const id = eventId(atMs, this.#number, `${node}.state`)
      this.#send({ id, atMs, name: 'queue', queue, json }, 'cluster')
    }
  }

  #fromPeer({ id, name, data }: SentEvent): void {
    if (name === 'hello' || name === 'end') return
    if (id !== undefined) {
      if (this.#seen.has(id)) return
      this.#seen.add(id)
      if (this.#seen.size > seenMax) this.#seen.delete(this.#seen.values().next().value as string)
    }
    if (name === 'missed') return this.#toClusterStreams('missed', data)
    const event = toNodeEvent(name, data, id)
    if (event !== undefined) this.#send(event, 'cluster')
  }

  #toClusterStreams(name: string, json: string): void {
    for (const stream of this.#streams) {
      if (stream.options.scope === 'cluster') stream.send(name, json)
    }
  }

  /** `from`: streams of this scope get it; those of the cluster get everything. */
  #send(event: NodeEvent, from: 'node' | 'cluster'): void {
    if (event.name === 'queue' && event.queue !== null) this.#queues.reported(event)
    for (const stream of this.#streams) {
      if (from === 'cluster' && stream.options.scope === 'node') continue
      if (isShown(event, stream)) stream.send(event.name, event.json, event.id)
    }
  }

  async #sendPast(
    stream: EventStream,
    sinceMs: number,
    stats: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const { node, past, nodeAuthorization } = this.#options
    const own = await past(sinceMs)
    const events = own.events.map((event) => ({ event, node }))
    const at = new Date(this.#options.context.clock.wallMs()).toISOString()
    const since = new Date(sinceMs).toISOString()
    const missed = (id: string, reason: string) => JSON.stringify({ at, node: id, reason, since })
    const missing = own.missing === null ? [] : [missed(node, own.missing)]
    if (stream.options.scope === 'cluster') {
      const { answers, unreachable } = await askPeers(stats, (url) =>
        readPast(url, sinceMs, nodeAuthorization()),
      )
      for (const answer of answers) {
        for (const { id, name, data } of answer) {
          if (name === 'missed') missing.push(data)
          const event = toNodeEvent(name, data, id)
          if (event !== undefined) events.push({ event, node })
        }
      }
      for (const { id } of unreachable) {
        missing.push(missed(String(id), 'unreachable'))
      }
    }
    for (const json of missing) stream.sendFirst('missed', json)
    events.sort((a, b) => a.event.atMs - b.event.atMs)
    for (const { event } of events) {
      if (isShown(event, stream)) stream.sendFirst(event.name, event.json, event.id)
    }
  }
}

function isShown({ name, queue }: NodeEvent, { options }: EventStream): boolean {
  const { filter, wakes } = options
  if (name === 'cluster') return filter.seesNodes
  if (name === 'wake' && !wakes) return false
  return queue === null ? filter.isAll : filter.sees(queue)
}

/** Undefined if the event is of another kind, or not one of a node. */
function toNodeEvent(name: string, json: string, id: string | undefined): NodeEvent | undefined {
  if (name !== 'queue' && name !== 'cluster' && name !== 'wake') return undefined
  const { at, queue } = JSON.parse(json) as { readonly at?: unknown; readonly queue?: unknown }
  const atMs = Date.parse(String(at))
  const event: NodeEvent = { name, json, atMs, queue: typeof queue === 'string' ? queue : null }
  return id === undefined ? event : { ...event, id }
}
