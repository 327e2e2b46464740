// A name is 1 to 255 bytes of UTF-8 without control characters, and not `.` or `..`, which URLs would
// normalise away. Lone surrogates are refused because they cannot be stored in PostgreSQL. `rouse.check_name`
// enforces the same rule in SQL, for producers that do not use HTTP.
import { fieldError } from './errors.ts'
import { limits, requestDefaults } from './limits.ts'

const defaultGroupAlias = 'default'

export function parseQueueName(value: unknown, field = 'queue'): string {
  return parseName(value, field)
}

export function parsePartitionName(value: unknown, field = 'partition'): string {
  return parseName(value, field)
}

/**
 * A stored name as users see it. Names that begin with U+001F are reserved for messages without a partition,
 * and shown as null; `rouse.shown_partition` does the same in SQL.
 */
export function shownPartition(name: string): string | null {
  return name.startsWith('\u001f') ? null : name
}

/** The reserved partition of messages with a priority from 1 to 9. */
export function partitionOfPriority(priority: number): string {
  return `\u001f${priority}`
}

/** `default` is another name of the unnamed group. */
export function parseConsumerGroup(value: unknown, field = 'consumerGroup'): string {
  const name = parseName(value, field)
  return name === defaultGroupAlias ? requestDefaults.consumerGroup : name
}

/** A group as the paths under `/api/v1/queues`, `/groups` and `/dead-letters` show it. */
export function shownGroup(name: string): string {
  return name === requestDefaults.consumerGroup ? defaultGroupAlias : name
}

export function parseNamespace(value: unknown, field = 'namespace'): string {
  return parseName(value, field)
}

export function parseTask(value: unknown, field = 'task'): string {
  return parseName(value, field)
}

export function parseConsumer(value: unknown, field = 'consumer'): string {
  return parseName(value, field)
}

/** Transaction ids appear in paths, too, so the rule for names applies. */
export function parseTransactionId(value: unknown, field = 'transactionId'): string {
  return parseName(value, field)
}

function parseName(value: unknown, field: string): string {
  // Schemas reject bodies without a required name, so what is missing here is a query parameter.
  if (value === undefined) throw fieldError('invalid_request', field, 'is missing')
  if (typeof value !== 'string') throw fieldError('invalid_name', field, 'must be a string')
  const fault = nameFault(value)
  if (fault !== undefined) throw fieldError('invalid_name', field, fault)
  return value
}

function nameFault(name: string): string | undefined {
  if (name === '') return 'must not be empty'
  if (name === '.' || name === '..') return 'must not be "." or ".."'
  let bytes = 0
  for (let i = 0; i < name.length; i += 1) {
    const unit = name.charCodeAt(i)
    if (isControl(unit)) return 'must not contain control characters'
    if (unit < 0x80) bytes += 1
    else if (unit < 0x800) bytes += 2
    else if (!isSurrogate(unit)) bytes += 3
    else if (isHighSurrogate(unit) && isLowSurrogate(name.charCodeAt(i + 1))) {
      bytes += 4
      i += 1
    } else return 'must be well-formed Unicode'
  }
  return bytes > limits.nameBytesMax ? `must be at most ${limits.nameBytesMax} bytes` : undefined
}

function isControl(unit: number): boolean {
  return unit < 0x20 || (unit >= 0x7f && unit <= 0x9f)
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff
}
