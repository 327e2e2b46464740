// What bundles for browsers have instead of push-in.ts: a browser has no connection to PostgreSQL. Programs that
// have one nevertheless import the functions of `@rouse/client/sql`, which every bundle has.
import { RouseError } from '../rouse-error.ts'

function refuse(): Promise<never> {
  const text = 'not in browsers: import it from @rouse/client/sql'
  return Promise.reject(new RouseError('invalid_request', text))
}

export const pushIn = refuse
export const enqueueMany = refuse
export const ackIn = refuse
