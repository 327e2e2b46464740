// Replaces push-in.ts in bundles for browsers, which have no connection to PostgreSQL. A program that has one
// all the same imports these functions from `@rouse/client/sql`, which every bundle has.
import { RouseError } from '../rouse-error.ts'

function refuse(): Promise<never> {
  const text = 'not in browsers: import it from @rouse/client/sql'
  return Promise.reject(new RouseError('invalid_request', text))
}

export const pushIn = refuse
export const enqueueMany = refuse
export const ackIn = refuse
