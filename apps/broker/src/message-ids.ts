import { webcrypto } from 'node:crypto'
import { createUuidV7 } from '@rouse/protocol'
import { systemClock } from './clock.ts'

/** Makes UUIDv7 that rise within this process. */
export function newMessageIds(): () => string {
  return createUuidV7({
    now: systemClock.wallMs,
    fillRandom: (bytes) => void webcrypto.getRandomValues(bytes),
  })
}
