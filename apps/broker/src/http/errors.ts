// Maps every error that a route throws to an error of the registry.
import { classifyPostgresError, OutcomeUnknownError, provesNotCommitted } from '@rouse/database'
import {
  type ErrorCode,
  type FieldError,
  fieldErrors,
  isErrorCode,
  RouseError,
  suggest,
  unknownField,
} from '@rouse/protocol'
import { SidecarError } from '@rouse/sidecar'
import type { FastifyError } from 'fastify'
import type { SchemaFault } from './validation-errors.ts'

export function toRouseError(error: unknown): RouseError {
  if (error instanceof RouseError) return error
  if (error instanceof SidecarError) return fromSidecar(error)
  if (!(error instanceof Error)) return new RouseError('internal', undefined, { cause: error })
  if ('severity' in error || 'syscall' in error) return fromPostgres(error)
  if ('validation' in error || codeOf(error).startsWith('FST_ERR_'))
    return fromFastify(error as FastifyError)
  return classifyPostgresError(error) === 'other'
    ? new RouseError('internal', undefined, { cause: error })
    : fromPostgres(error)
}

function fromSidecar(error: SidecarError): RouseError {
  switch (error.code) {
    case 'overloaded':
    case 'draining':
    case 'database_unavailable':
    case 'outcome_unknown':
    case 'internal':
      return new RouseError(error.code, undefined, { cause: error })
    case 'partition_locked':
      return new RouseError(error.code, `${error.message}; nothing was stored`, { cause: error })
    case 'busy':
      return new RouseError('overloaded', 'the database is busy with this partition', {
        cause: error,
      })
    case 'refused':
      return refused(error.message, error.detail, error)
  }
}

/** Maps an error of a call that bypassed the sidecar. */
function fromPostgres(error: Error): RouseError {
  if (error instanceof OutcomeUnknownError) {
    return new RouseError('outcome_unknown', undefined, { cause: error })
  }
  switch (classifyPostgresError(error)) {
    case 'unavailable':
    case 'outcome_unknown':
      return new RouseError(
        provesNotCommitted(error) ? 'database_unavailable' : 'outcome_unknown',
        undefined,
        { cause: error },
      )
    case 'retryable':
      return new RouseError('overloaded', 'the database is busy', { cause: error })
    case 'conflict':
    case 'invalid':
      return refused(error.message, detailOf(error), error)
    case 'other':
      return new RouseError('internal', undefined, { cause: error })
  }
}

/** An error raised by a SQL function. Its detail contains the code and, if known, the field. */
function refused(
  message: string,
  detail: Readonly<Record<string, unknown>>,
  cause: unknown,
): RouseError {
  const code = isErrorCode(detail.code) ? detail.code : 'invalid_request'
  const errors = typeof detail.field === 'string' ? [{ field: detail.field, message }] : undefined
  return new RouseError(code, message, { errors, cause, facts: factsOf(code, detail) })
}

function factsOf(
  code: ErrorCode,
  { leases, oldestLeaseAgeMs, key, id }: Readonly<Record<string, unknown>>,
): Readonly<Record<string, number | string>> | undefined {
  if (code === 'unique_conflict' && typeof key === 'string') {
    return { key, ...(typeof id === 'string' && { id }) }
  }
  if (code !== 'consumer_transaction_open') return undefined
  return { leases: Number(leases), oldestLeaseAgeMs: Number(oldestLeaseAgeMs) }
}

function detailOf(error: Error): Readonly<Record<string, unknown>> {
  try {
    const detail: unknown = JSON.parse((error as { detail?: string }).detail ?? '')
    return typeof detail === 'object' && detail !== null ? { ...detail } : {}
  } catch {
    return {}
  }
}

function fromFastify(error: FastifyError): RouseError {
  if (error.validation !== undefined) return fromFaults(error.validation)
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new RouseError('payload_too_large', 'the body is too large')
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new RouseError('unsupported_media_type', 'the body must be application/json')
    default:
      return (error.statusCode ?? 500) < 500
        ? new RouseError('invalid_request', error.message)
        : new RouseError('internal', undefined, { cause: error })
  }
}

/** Unknown fields come first: a misspelt field is often the reason why another one is missing. */
function fromFaults(faults: readonly SchemaFault[]): RouseError {
  const unknown = faults.filter(isUnknownField).map(toFieldError)
  const others = faults.filter((fault) => !isUnknownField(fault)).map(toFieldError)
  return fieldErrors(unknown.length > 0 ? 'unknown_field' : 'invalid_request', [
    ...unknown,
    ...others,
  ])
}

function isUnknownField({ params }: SchemaFault): boolean {
  return typeof params.additionalProperty === 'string'
}

function toFieldError(fault: SchemaFault): FieldError {
  const { instancePath, message, params } = fault
  const name = params.missingProperty ?? params.additionalProperty
  const field = fieldPath(instancePath, typeof name === 'string' ? [name] : [])
  if (typeof params.additionalProperty === 'string') {
    const { known = [], nested = [] } = params as { known?: string[]; nested?: string[] }
    return unknownField(field, suggest(params.additionalProperty, known, nested))
  }
  return { field, message: name === undefined ? describe(message, params) : 'is missing' }
}

/** Converts `/items/3` and `queue` to `items[3].queue`. */
function fieldPath(instancePath: string, more: readonly string[]): string {
  const field = [...instancePath.split('/').slice(1), ...more].reduce((path, part) => {
    if (/^\d+$/.test(part)) return `${path}[${part}]`
    return path === '' ? part : `${path}.${part}`
  }, '')
  return field === '' ? 'body' : field
}

function describe(message = 'is not valid', params: SchemaFault['params']): string {
  return Array.isArray(params.allowedValues)
    ? `must be one of ${params.allowedValues.join(', ')}`
    : message
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}
