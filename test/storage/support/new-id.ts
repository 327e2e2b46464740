import { randomBytes } from 'node:crypto'
import { createMessageIds } from '@rouse/protocol'

/** An id as a node stores it: the id that users see names the place of the message. */
export const newId = createMessageIds({
  now: Date.now,
  fillRandom: (bytes) => bytes.set(randomBytes(bytes.length)),
})
