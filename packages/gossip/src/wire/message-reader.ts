// Decodes messages. The bytes are signed but not trusted: every field is checked, and the whole datagram is
// refused if one field is out of bounds.
import { Unpackr } from 'msgpackr'
import type { SentHint } from '../hints/hint.ts'
import { hintFromArray, isOfKnownKind } from '../hints/hint-codec.ts'
import { recipientBytes } from '../hints/recipients.ts'
import { reportsMax } from '../hints/reports.ts'
import { entryBytes } from '../interest/peer-interest.ts'
import { addressBytesMax } from '../transport/address.ts'
import type { SenderKey } from './frame.ts'
import { type Message, messageTypes } from './messages.ts'
import { isBytes, isCount, isText } from './wire-values.ts'

export const messagesMax = 16
export const batchesMax = 64
export const hintsMax = 400
export const peersMax = 20
/** The size limit for peer addresses, which share a datagram with a hello and a heartbeat. */
export const peersBytesMax = 900
export const nodeIdBytesMax = 64
const interestBytesMax = 1_200
export const durationMsMax = 2 ** 31

// unpackMultiple is not used: nine bytes are enough to make it loop forever.
const unpackr = new Unpackr({
  useRecords: false,
  structuredClone: false,
  int64AsType: 'number',
  copyBuffers: true,
})

export function readMessages(body: Buffer): Message[] | 'decode' | 'shape' {
  let decoded: unknown
  try {
    decoded = unpackr.unpack(body)
  } catch {
    return 'decode'
  }
  if (!Array.isArray(decoded) || decoded.length > messagesMax) return 'shape'
  const messages: Message[] = []
  for (const item of decoded as unknown[]) {
    if (!Array.isArray(item) || !isCount(item[0])) return 'shape'
    const read = readers.get(item[0])
    if (read === undefined) continue
    const message = read(item as unknown[])
    if (message === undefined) return 'shape'
    messages.push(message)
  }
  return messages
}

type Reader = (fields: readonly unknown[]) => Message | undefined

const readers = new Map<number, Reader>([
  [messageTypes.hello, readHello],
  [messageTypes.heartbeat, readHeartbeat],
  [messageTypes.peers, readPeers],
  [messageTypes.leave, () => ({ type: 'leave' })],
  [messageTypes.interest, readInterest],
  [messageTypes.hints, readHints],
  [messageTypes.settled, readSettled],
  [messageTypes.stale, readStale],
  [messageTypes['vouch request'], readVouchRequest],
  [messageTypes.vouch, readVouch],
])

function readHello([, isReply, nodeId, token, known]: readonly unknown[]): Message | undefined {
  if (typeof isReply !== 'boolean' || !isCount(token) || !isCount(known)) return undefined
  if (!isText(nodeId, nodeIdBytesMax) || nodeId === '') return undefined
  return { type: 'hello', isReply, nodeId, token, known }
}

/** By far the most frequent message, so it is read without intermediate arrays. */
function readHeartbeat(fields: readonly unknown[]): Message | undefined {
  for (let index = 1; index <= heartbeatNumbers; index += 1) {
    if (!isCount(fields[index])) return undefined
  }
  const numbers = fields as HeartbeatFields
  if (numbers[4] > durationMsMax || numbers[5] > durationMsMax) return undefined
  return {
    type: 'heartbeat',
    token: numbers[1],
    echo: numbers[2],
    heldTenthMs: numbers[3],
    sinceHeardMs: numbers[4],
    intervalMs: numbers[5],
    countedFrom: numbers[6],
    settledBatch: numbers[7],
    batchesSent: numbers[8],
    interestVersion: numbers[9],
    interestHeld: numbers[10],
    view: numbers[11],
  }
}

const heartbeatNumbers = 11
type Six = [number, number, number, number, number, number]
/** The type, then the numbers. */
type HeartbeatFields = readonly [...Six, ...Six]

function readPeers([, addresses]: readonly unknown[]): Message | undefined {
  if (!Array.isArray(addresses) || addresses.length > peersMax) return undefined
  const isAddress = (item: unknown) => isText(item, addressBytesMax)
  return addresses.every(isAddress) ? { type: 'peers', addresses } : undefined
}

function readInterest([, version, entries]: readonly unknown[]): Message | undefined {
  if (!isCount(version)) return undefined
  if (entries === null) return { type: 'interest', version, entries: 'all' }
  if (!isBytes(entries) || entries.length % entryBytes !== 0) return undefined
  return entries.length > interestBytesMax ? undefined : { type: 'interest', version, entries }
}

function readHints([, items, to]: readonly unknown[]): Message | undefined {
  if (!Array.isArray(items) || items.length > batchesMax) return undefined
  if (to !== undefined && (!isBytes(to) || to.length % recipientBytes !== 0)) return undefined
  const batches: { number: number; hints: SentHint[] }[] = []
  let hintCount = 0
  for (const item of items as unknown[]) {
    if (!Array.isArray(item)) return undefined
    const [number, entries] = item as unknown[]
    if (!isCount(number) || !Array.isArray(entries)) return undefined
    hintCount += entries.length
    if (hintCount > hintsMax) return undefined
    const hints = entries.filter(isOfKnownKind).map(hintFromArray)
    if (!hints.every((hint) => hint !== undefined)) return undefined
    batches.push({ number, hints })
  }
  return { type: 'hints', batches, ...(to === undefined ? {} : { to }) }
}

function readSettled([, to, settled]: readonly unknown[]): Message | undefined {
  if (!isBytes(to) || to.length !== recipientBytes || !Array.isArray(settled)) return undefined
  if (settled.length % 2 !== 0 || settled.length > 2 * reportsMax) return undefined
  return settled.every(isCount) ? { type: 'settled', to, settled } : undefined
}

function readStale([, incarnation, echo]: readonly unknown[]): Message | undefined {
  if (!isCount(incarnation) || !isCount(echo)) return undefined
  return { type: 'stale', incarnation, echo }
}

function readVouchRequest([, bytes, incarnation, token]: readonly unknown[]): Message | undefined {
  const sender = readSender(bytes)
  if (sender === undefined || !isCount(incarnation) || !isCount(token)) return undefined
  return { type: 'vouch request', sender, incarnation, token }
}

function readVouch([, bytes, ...numbers]: readonly unknown[]): Message | undefined {
  const sender = readSender(bytes)
  const [incarnation, sinceHeardMs, echo] = numbers
  if (sender === undefined || !isCount(incarnation)) return undefined
  if (!isCount(sinceHeardMs) || !isCount(echo)) return undefined
  return { type: 'vouch', sender, incarnation, sinceHeardMs, echo }
}

function readSender(bytes: unknown): SenderKey | undefined {
  if (!isBytes(bytes) || bytes.length !== 8) return undefined
  return Buffer.from(bytes).toString('latin1')
}
