// What the link to the peers reports to event streams: changes of peers, and the hints between nodes.
import type { Hint as GossipHint, HintsSent, PeerEvent } from '@rouse/gossip'
import type { NodeEvents } from '../observe/events/node-events.ts'

export type WatchedEvents = Pick<NodeEvents, 'clusterChanged' | 'wakes'>

export class LinkEvents {
  readonly #events: WatchedEvents
  readonly #node: string

  constructor(events: WatchedEvents, node: string) {
    this.#events = events
    this.#node = node
  }

  peerChanged(peer: string, event: PeerEvent): void {
    this.#events.clusterChanged(`node_${event}`, peerTexts[event](peer, this.#node), { peer })
  }

  received(hint: GossipHint, from: string): void {
    if (isAboutQueue(hint)) this.#events.wakes?.report('hint_received', hint.scope, { from })
  }

  lost(from: string, count: number): void {
    this.#events.wakes?.report('hint_lost', null, { from, count })
  }

  /** Undefined while no stream wants wake-ups. */
  get onHintsSent(): HintsSent | undefined {
    const { wakes } = this.#events
    if (wakes === undefined) return undefined
    return (nodes, hints, isRepeat) => {
      for (const hint of hints) {
        if (!isAboutQueue(hint)) continue
        for (const to of nodes) wakes.report('hint_sent', hint.scope, { to, repeat: isRepeat })
      }
    }
  }
}

const peerTexts: Readonly<Record<PeerEvent, (peer: string, own: string) => string>> = {
  joined: (peer, own) => `${peer} joined: ${own} hears it.`,
  alive: (peer, own) => `${peer} answers ${own} again.`,
  suspect: (peer, own) => `${peer} does not answer ${own}.`,
  unreachable: (peer, own) => `${peer} does not hear ${own}.`,
  dead: (peer, own) => `${peer} is gone: ${own} has not heard it for a while.`,
  left: (peer) => `${peer} left the cluster.`,
}

function isAboutQueue({ kind }: GossipHint): boolean {
  return kind === 'MESSAGE_AVAILABLE' || kind === 'PARTITION_FREE'
}
