import { webcrypto } from 'node:crypto'
import { createUuidV7, withPlace } from '@rouse/protocol'
import { systemClock } from './clock.ts'

/** Generates ids to be stored with new messages. They increase within this process. */
export function newMessageIds(): () => string {
  const newUuid = createUuidV7({
    now: systemClock.wallMs,
    fillRandom: (bytes) => void webcrypto.getRandomValues(bytes),
  })
  return () => withPlace(newUuid())
}
