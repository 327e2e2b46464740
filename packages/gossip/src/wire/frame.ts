// One datagram on the wire:
//
//   0  magic 'RG'        2  wire version      3  flags, 0          4  key id         5  reserved, 0
//   6  total length      8  cluster           12 sender            20 incarnation    28 sequence number
//   36 body: a MessagePack array of messages                       last 16 bytes: truncated HMAC-SHA256
//
// Big-endian. The cluster is 4 bytes and the sender 8 bytes of a SHA-256 of their names. Until the MAC is
// verified, nothing is decoded, allocated, answered or logged.
import { createHash } from 'node:crypto'
import type { DropReason } from './drops.ts'

/** Fits every path that IPv6 allows, tunnels included. */
export const frameBytesMax = 1_200
/** The largest accepted datagram; other versions may send more than we do. */
export const acceptedBytesMax = 1_400
export const headerBytes = 36
export const tagBytes = 16
export const bodyBytesMax = frameBytesMax - headerBytes - tagBytes

const magic = 0x52_47
const wireVersion = 1
const uint32 = 2 ** 32

export interface Signer {
  /** The id of the key that `sign` uses. */
  readonly keyId: number
  /** Writes the tag of the first `length` bytes directly behind them. */
  sign(bytes: Buffer, length: number): void
  verify(keyId: number, bytes: Buffer, length: number): 'genuine' | 'key' | 'mac'
}

/** Eight bytes as text: identifies a node in the frame header. */
export type SenderKey = string

export interface Frame {
  readonly sender: SenderKey
  readonly incarnation: number
  readonly sequence: number
  readonly body: Buffer
}

export interface FrameOrigin {
  readonly cluster: number
  readonly sender: SenderKey
  readonly incarnation: number
}

export function clusterNumber(clusterId: string): number {
  return createHash('sha256').update(clusterId).digest().readUInt32BE(0)
}

export function senderKey(clusterId: string, nodeId: string): SenderKey {
  return createHash('sha256').update(`${clusterId}\0${nodeId}`).digest().toString('latin1', 0, 8)
}

export function sealFrame(
  origin: FrameOrigin,
  sequence: number,
  body: Uint8Array,
  signer: Signer,
): Buffer {
  if (body.length > bodyBytesMax)
    throw new RangeError(`a body of ${body.length} bytes exceeds ${bodyBytesMax}`)
  const signedBytes = headerBytes + body.length
  const bytes = Buffer.allocUnsafe(signedBytes + tagBytes)
  bytes.writeUInt16BE(magic, 0)
  bytes[2] = wireVersion
  bytes[3] = 0
  bytes[4] = signer.keyId
  bytes[5] = 0
  bytes.writeUInt16BE(bytes.length, 6)
  bytes.writeUInt32BE(origin.cluster, 8)
  bytes.write(origin.sender, 12, 8, 'latin1')
  writeUInt64(bytes, origin.incarnation, 20)
  writeUInt64(bytes, sequence, 28)
  bytes.set(body, headerBytes)
  signer.sign(bytes, signedBytes)
  return bytes
}

/** The frame, or the reason to drop the datagram. The body is a view into `bytes`. */
export function openFrame(bytes: Buffer, cluster: number, signer: Signer): Frame | DropReason {
  const length = bytes.length
  if (length < headerBytes + tagBytes || length > acceptedBytesMax) return 'size'
  if (bytes.readUInt16BE(0) !== magic) return 'magic'
  if (bytes[2] !== wireVersion) return 'version'
  if (bytes.readUInt16BE(6) !== length) return 'length'
  if (bytes.readUInt32BE(8) !== cluster) return 'cluster'
  const verdict = signer.verify(bytes[4] ?? 0, bytes, length - tagBytes)
  if (verdict !== 'genuine') return verdict
  return {
    sender: bytes.toString('latin1', 12, 20),
    incarnation: readUInt64(bytes, 20),
    sequence: readUInt64(bytes, 28),
    body: bytes.subarray(headerBytes, length - tagBytes),
  }
}

function writeUInt64(bytes: Buffer, value: number, offset: number): void {
  bytes.writeUInt32BE(Math.floor(value / uint32), offset)
  bytes.writeUInt32BE(value % uint32, offset + 4)
}

function readUInt64(bytes: Buffer, offset: number): number {
  return bytes.readUInt32BE(offset) * uint32 + bytes.readUInt32BE(offset + 4)
}
