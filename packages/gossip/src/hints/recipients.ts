// A batch of hints has one number for everybody, and each gets of it what it wants. So what goes to some says to whom:
// recorded and sent to another, it would pass there for that one's part of the batch, and the part itself for a second
// copy. What goes to all in the same words needs no names.
import type { SenderKey } from '../wire/frame.ts'

/** So many share a datagram; the names of more would take the room of hints. */
export const recipientsMax = 12
/** Of a sender key. In one of eight thousand clusters of a thousand nodes two share them: these are as they would be
 * without names. */
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

/** The same, in groups that share a datagram. */
export function inGroups<To>(recipients: readonly To[]): To[][] {
  const count = Math.ceil(recipients.length / recipientsMax)
  return Array.from({ length: count }, (_, index) => {
    return recipients.slice(index * recipientsMax, (index + 1) * recipientsMax)
  })
}
