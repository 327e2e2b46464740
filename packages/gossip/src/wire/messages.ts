// What nodes say to each other. A node states facts about itself only; of others it passes on addresses
// to try, and how long ago it heard them when it is asked. On the wire each message is a positional
// array that begins with its type. Unknown types, and what follows the known fields, are passed over.
import { Packr } from 'msgpackr'
import type { Hint } from '../hints/hint.ts'
import { hintToArray } from '../hints/hint-codec.ts'
import type { BatchCount } from '../hints/hint-inbox.ts'
import type { Address } from '../transport/address.ts'
import type { SenderKey } from './frame.ts'

/** To an address that is worth a try, and as the answer to it (`isReply`). */
export interface Hello {
  readonly type: 'hello'
  readonly isReply: boolean
  readonly nodeId: string
  readonly token: number
  /** How many addresses its sender knows. */
  readonly known: number
}

export interface Heartbeat extends BatchCount {
  readonly type: 'heartbeat'
  /** To be sent back: it proves that we are heard, and gives the round trip. */
  readonly token: number
  /** The receiver's last token, 0 for none, and how long ago it came. */
  readonly echo: number
  readonly heldTenthMs: number
  readonly sinceHeardMs: number
  readonly intervalMs: number
  readonly interestVersion: number
  /** The version of the receiver's interest that is held here. */
  readonly interestHeld: number
  /** The same on two nodes that see the same members. */
  readonly view: number
}

export interface Peers {
  readonly type: 'peers'
  readonly addresses: readonly Address[]
}

export interface Leave {
  readonly type: 'leave'
}

export interface InterestNews {
  readonly type: 'interest'
  readonly version: number
  /** Hashes of keys, 6 bytes each; or everything. */
  readonly hashes: Uint8Array | 'all'
}

export interface HintBatch {
  readonly number: number
  readonly hints: readonly Hint[]
}

export interface Hints {
  readonly type: 'hints'
  readonly batches: readonly HintBatch[]
  /** For whom; see recipients.ts. Absent: for everybody. */
  readonly to?: Uint8Array | undefined
}

/** The receiver's id was seen in a later life. */
export interface Stale {
  readonly type: 'stale'
  readonly incarnation: number
  /** The token of what was refused. */
  readonly echo: number
}

export interface VouchRequest {
  readonly type: 'vouch request'
  readonly sender: SenderKey
  readonly incarnation: number
  /** To be sent back: it shows who asked, and when. */
  readonly token: number
}

export interface Vouch {
  readonly type: 'vouch'
  readonly sender: SenderKey
  readonly incarnation: number
  readonly sinceHeardMs: number
  /** The token of who asked. */
  readonly echo: number
}

export type Message =
  | Hello
  | Heartbeat
  | Peers
  | Leave
  | InterestNews
  | Hints
  | Stale
  | VouchRequest
  | Vouch

export const messageTypes = {
  hello: 1,
  heartbeat: 2,
  peers: 3,
  leave: 4,
  interest: 5,
  hints: 7,
  stale: 9,
  'vouch request': 10,
  vouch: 11,
} as const satisfies Record<Message['type'], number>

/** A hello is padded together with its node id, so that the answer to a forged sender is no longer than the
 * question, whatever either is called and however far they have counted. */
const paddedIdBytes = 171

const packr = new Packr({ useRecords: false, structuredClone: false })

export function packMessages(messages: readonly Message[]): Uint8Array {
  return packr.pack(messages.map(toArray))
}

function toArray(message: Message): unknown[] {
  const type = messageTypes[message.type]
  switch (message.type) {
    case 'hello': {
      const { isReply, nodeId, token, known } = message
      return [type, isReply, nodeId, token, known, isReply ? '' : paddingFor(nodeId)]
    }
    case 'heartbeat':
      return [
        type,
        message.token,
        message.echo,
        message.heldTenthMs,
        message.sinceHeardMs,
        message.intervalMs,
        message.countedFrom,
        message.settledBatch,
        message.batchesSent,
        message.interestVersion,
        message.interestHeld,
        message.view,
      ]
    case 'peers':
      return [type, message.addresses]
    case 'leave':
      return [type]
    case 'interest':
      return [type, message.version, message.hashes === 'all' ? null : message.hashes]
    case 'hints': {
      const batches = message.batches.map(({ number, hints }) => [number, hints.map(hintToArray)])
      return message.to === undefined ? [type, batches] : [type, batches, message.to]
    }
    case 'stale':
      return [type, message.incarnation, message.echo]
    case 'vouch request':
      return [type, Buffer.from(message.sender, 'latin1'), message.incarnation, message.token]
    case 'vouch':
      return [
        type,
        Buffer.from(message.sender, 'latin1'),
        message.incarnation,
        message.sinceHeardMs,
        message.echo,
      ]
  }
}

function paddingFor(nodeId: string): string {
  return '.'.repeat(Math.max(0, paddedIdBytes - Buffer.byteLength(nodeId)))
}
