// A batch has one number for all peers, but each peer gets only the hints it wants. A datagram that goes only
// to some peers therefore names them. Otherwise an attacker could replay the datagram to another peer. That
// peer would take it for its own part of the batch and drop the real part as a duplicate. A datagram with the
// same content for all peers needs no names.
import type { SenderKey } from '../wire/frame.ts'

/** How many recipients a datagram may name. More names would take space from hints. */
export const recipientsMax = 12
/** A name is the first bytes of a sender key. In one of 8,000 clusters with 1,000 nodes, two nodes have the
 * same name. Only such a pair is not protected against this replay. */
export const recipientBytes = 4

export function writeRecipients(senders: readonly SenderKey[]): Uint8Array {
  return Buffer.from(senders.map((sender) => sender.slice(0, recipientBytes)).join(''), 'latin1')
}

export function isAmong(sender: SenderKey, recipients: Uint8Array): boolean {
  for (let at = 0; at < recipients.length; at += recipientBytes) {
    let same = 0
    while (same < recipientBytes && recipients[at + same] === sender.charCodeAt(same)) same += 1
    if (same === recipientBytes) return true
  }
  return false
}

/** Splits recipients into groups that share a datagram. */
export function inGroups<To>(recipients: readonly To[]): To[][] {
  const count = Math.ceil(recipients.length / recipientsMax)
  return Array.from({ length: count }, (_, index) => {
    return recipients.slice(index * recipientsMax, (index + 1) * recipientsMax)
  })
}
