import { isCount, isText } from '../wire/wire-values.ts'
import { type Hint, type HintLabels, hintKinds, hintLimits, type SentHint } from './hint.ts'

/** [kind, scope, part, count, value, labels, ask]; absent fields at the end are omitted. */
export function hintToArray({ kind, scope, part, count, value, labels, ask }: SentHint): unknown[] {
  const fields: unknown[] = [hintKinds.indexOf(kind), scope, part ?? null, count]
  if (value !== undefined || labels !== undefined || ask !== undefined) fields.push(value ?? null)
  if (labels !== undefined || ask !== undefined) fields.push(labels ?? null)
  if (ask !== undefined) fields.push(ask)
  return fields
}

export function hintFromArray(fields: unknown): SentHint | undefined {
  if (!Array.isArray(fields)) return undefined
  const [kindNumber, scope, part, count, value, labels, ask] = fields as unknown[]
  const kind = isCount(kindNumber) ? hintKinds[kindNumber] : undefined
  const { nameBytesMax } = hintLimits
  if (kind === undefined || !isText(scope, nameBytesMax) || !isCount(count)) return undefined
  if (!isAbsent(part) && !isText(part, nameBytesMax)) return undefined
  if (!isAbsent(value) && !isCount(value)) return undefined
  if (!isAbsent(labels) && !isLabels(labels)) return undefined
  if (!isAbsent(ask) && !isCount(ask)) return undefined
  return {
    kind,
    scope,
    count,
    ...(isAbsent(part) ? {} : { part }),
    ...(isAbsent(value) ? {} : { value }),
    ...(isAbsent(labels) ? {} : { labels }),
    ...(isAbsent(ask) ? {} : { ask }),
  }
}

/** A later version may add kinds. This version ignores them. */
export function isOfKnownKind(fields: unknown): boolean {
  return !Array.isArray(fields) || !isCount(fields[0]) || fields[0] < hintKinds.length
}

/** An upper bound for the size of a hint on the wire. */
export function hintBytes({ scope, part, labels }: Hint): number {
  const names = [scope, part, ...(labels ?? [])]
  return names.reduce((sum, name) => sum + 3 + Buffer.byteLength(name ?? ''), 27)
}

function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined
}

function isLabels(value: unknown): value is HintLabels {
  return (
    Array.isArray(value) &&
    value.length <= hintLimits.labelsMax &&
    value.every((label) => label === null || isText(label, hintLimits.nameBytesMax))
  )
}
