// Optional checks of payloads, at the push and before a handler, by any schema of the Standard Schema
// specification (Zod, Valibot, ArkType and others). The types are repeated here, so that there is no dependency.
import { RouseError } from './rouse-error.ts'

/** A schema of any library that follows Standard Schema. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
  }
}

/** What a schema returns for a value. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

/** What a schema finds wrong. */
export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** Returns the value as the schema has parsed it. Throws or rejects with `invalid_payload`. */
export function checkedBy<Output>(
  schema: StandardSchema<Output>,
  value: unknown,
): Output | Promise<Output> {
  const result = schema['~standard'].validate(value)
  return result instanceof Promise ? result.then(valueOf) : valueOf(result)
}

function valueOf<Output>(result: StandardResult<Output>): Output {
  if (result.issues === undefined) return result.value
  const errors = result.issues.map(({ message, path = [] }) => ({
    field: [
      'payload',
      ...path.map((part) => String(typeof part === 'object' ? part.key : part)),
    ].join('.'),
    message,
  }))
  const [first] = errors
  const text = first === undefined ? 'the payload is invalid' : `${first.field}: ${first.message}`
  throw new RouseError('invalid_payload', text, { errors })
}
