import { Type } from '../typebox.ts'

/** If the value has the field, only the first schema applies, so that errors name the right fields. */
export function ifGiven(field: string, given: object, otherwise: object): object {
  return {
    if: { type: 'object', required: [field] },
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    then: given,
    else: otherwise,
  }
}

/** A field that must be absent here. The reason is what the error says. */
export function excluded(reason: string) {
  return Type.Optional(Type.Unsafe<never>({ not: {}, description: reason }))
}
