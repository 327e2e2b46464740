import { webcrypto } from 'node:crypto'
import { createUuidV7 } from '@rouse/protocol'
import { systemClock } from './clock.ts'

/** Generates UUIDv7 that increase within this process. */
export function newMessageIds(): () => string {
  return createUuidV7({
    now: systemClock.wallMs,
    fillRandom: (bytes) => void webcrypto.getRandomValues(bytes),
  })
}
