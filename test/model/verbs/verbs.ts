// The table of all verbs. A new verb is a row in one of these lists.
import fc from 'fast-check'
import type { Step, Verb } from '../verb.ts'
import { addressing } from './addressing.ts'
import { consuming } from './consuming.ts'
import { crossing } from './crossing.ts'
import { letters } from './dead-letters.ts'
import { ending } from './ending.ts'
import { listing } from './listing.ts'
import { operating } from './operating.ts'
import { ownTransactions } from './own-transactions.ts'
import { passingTime } from './passing-time.ts'
import { producing } from './producing.ts'
import { reporting } from './reporting.ts'
import { sqlCalls } from './sql-calls.ts'
import { unique } from './unique.ts'

export const verbs: readonly Verb[] = [
  ...producing,
  ...unique,
  ...consuming,
  ...crossing,
  ...ending,
  ...reporting,
  ...addressing,
  ...listing,
  ...operating,
  ...letters,
  ...passingTime,
  ...ownTransactions,
  ...sqlCalls,
]

const step = fc.oneof(...verbs.map(({ weight, steps }) => ({ weight, arbitrary: steps })))

export function sequences(lengthMax: number): fc.Arbitrary<Step[]> {
  return fc.array(step, { minLength: 1, maxLength: lengthMax, size: 'max' })
}
