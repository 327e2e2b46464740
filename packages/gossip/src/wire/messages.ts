// The messages between nodes. A node reports facts about itself only. About other nodes it reports addresses
// and, on request, how long ago it heard them. On the wire each message is a positional array that starts
// with its type. Unknown types and extra fields are ignored.
import { Packr } from 'msgpackr'
import type { SentHint } from '../hints/hint.ts'
import { hintToArray } from '../hints/hint-codec.ts'
import type { BatchCount } from '../hints/hint-inbox.ts'
import type { Address } from '../transport/address.ts'
import type { SenderKey } from './frame.ts'

/** Sent to an address where a peer may be, and as the answer to another hello (`isReply`). */
export interface Hello {
  readonly type: 'hello'
  readonly isReply: boolean
  readonly nodeId: string
  readonly token: number
  /** How many addresses the sender knows. */
  readonly known: number
}

export interface Heartbeat extends BatchCount {
  readonly type: 'heartbeat'
  /** The receiver returns this token. That proves that the receiver hears us, and measures the round trip. */
  readonly token: number
  /** The receiver's last token, or 0 for none; `heldTenthMs` is the time since it arrived. */
  readonly echo: number
  readonly heldTenthMs: number
  readonly sinceHeardMs: number
  readonly intervalMs: number
  readonly interestVersion: number
  /** The version of the receiver's interest that the sender holds. */
  readonly interestHeld: number
  /** Equal on two nodes that see the same members. */
  readonly view: number
}

export interface Peers {
  readonly type: 'peers'
  readonly addresses: readonly Address[]
}

export interface Leave {
  readonly type: 'leave'
}

export interface InterestMessage {
  readonly type: 'interest'
  readonly version: number
  /** Entries of 8 bytes, see peer-interest.ts; `all` means every hint. */
  readonly entries: Uint8Array | 'all'
}

export interface HintBatch {
  readonly number: number
  readonly hints: readonly SentHint[]
}

export interface Hints {
  readonly type: 'hints'
  readonly batches: readonly HintBatch[]
  /** The recipients; see recipients.ts. Absent: every peer. */
  readonly to?: Uint8Array | undefined
}

/** The messages of hints are taken: peers that did not get the hints do not need them. */
export interface Settled {
  readonly type: 'settled'
  /** The sender of the hints; see recipients.ts. A report to another node must not count here. */
  readonly to: Uint8Array
  /** The batch number and the ask number of each hint, alternating. */
  readonly settled: readonly number[]
}

/** A later incarnation of the receiver's id is known. */
export interface Stale {
  readonly type: 'stale'
  readonly incarnation: number
  /** The token of the refused datagram. */
  readonly echo: number
}

export interface VouchRequest {
  readonly type: 'vouch request'
  readonly sender: SenderKey
  readonly incarnation: number
  /** The answer returns this token, which shows that we asked, and when. */
  readonly token: number
}

export interface Vouch {
  readonly type: 'vouch'
  readonly sender: SenderKey
  readonly incarnation: number
  readonly sinceHeardMs: number
  /** The token of the request. */
  readonly echo: number
}

export type Message =
  | Hello
  | Heartbeat
  | Peers
  | Leave
  | InterestMessage
  | Hints
  | Settled
  | Stale
  | VouchRequest
  | Vouch

/** Type 5 was interest without consumer groups (0.1.0). The two sides of a pair of old and new nodes ignore
 * each other's interest and never confirm it. So both send each other every hint, and their waiters keep
 * polling until the older node is replaced. */
export const messageTypes = {
  hello: 1,
  heartbeat: 2,
  peers: 3,
  leave: 4,
  hints: 7,
  stale: 9,
  'vouch request': 10,
  vouch: 11,
  interest: 12,
  settled: 13,
} as const satisfies Record<Message['type'], number>

/** The node id and the padding of a hello together have this length. Then the answer is never longer than the
 * hello, whatever the ids and counters are, and a forged source address cannot amplify traffic. */
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
      return [type, message.version, message.entries === 'all' ? null : message.entries]
    case 'hints': {
      const batches = message.batches.map(({ number, hints }) => [number, hints.map(hintToArray)])
      return message.to === undefined ? [type, batches] : [type, batches, message.to]
    }
    case 'settled':
      return [type, message.to, message.settled]
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
