import { randomBytes } from 'node:crypto'
import { createUuidV7, withPlace } from '@rouse/protocol'

const newUuid = createUuidV7({
  now: Date.now,
  fillRandom: (bytes) => bytes.set(randomBytes(bytes.length)),
})

/** An id as a node stores it: the id that users see names the place of the message. */
export function newId(): string {
  return withPlace(newUuid())
}
