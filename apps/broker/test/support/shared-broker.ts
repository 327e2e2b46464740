import { type Test, t } from 'tap'
import { type BrokerOptions, type RunningBroker, startBroker } from './broker.ts'

/** One node for all tests of a file; each test uses its own queues. */
export function sharedBroker(options: BrokerOptions = {}): Promise<RunningBroker> {
  return startBroker(t as unknown as Test, options)
}

/** Another node on the database of the first one. */
export function startSecond({ database }: RunningBroker): Promise<RunningBroker> {
  return startBroker(t as unknown as Test, { database })
}

let names = 0

/** A name that no other test of the file uses. */
export function unique(prefix = 'queue'): string {
  names += 1
  return `${prefix}-${names}`
}
