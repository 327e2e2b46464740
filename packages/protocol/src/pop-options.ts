// Reads the options of a pop, from a query string or from a body, into one type.
import { allFaults } from './all-faults.ts'
import { fieldError } from './errors.ts'
import { limits as defaultLimits, type Limits, requestDefaults } from './limits.ts'
import { parseConsumer, parseConsumerGroup, parseNamespace, parseTask } from './names.ts'
import { parseBoolean, parseChoice, parseDecimal, parseTime, type Range } from './query-values.ts'
import {
  type PopBody,
  PopQuerySchema,
  subscriptionModeAliases,
  subscriptionModes,
} from './schemas/pop.ts'

export interface PopOptions {
  readonly batch: number
  readonly wait: boolean
  readonly timeoutMs: number
  readonly consumerGroup: string
  /** The name that the consumer gives itself. */
  readonly consumer: string | undefined
  readonly autoAck: boolean
  readonly partitions: number
  readonly subscription: 'all' | 'new' | { readonly fromMs: number }
  /** Absent: the queue's lease time. */
  readonly leaseSeconds: number | undefined
  /** Each message gets its own lease. */
  readonly leasePerMessage: boolean
  readonly namespace: string | undefined
  readonly task: string | undefined
}

type PopFields = { readonly [K in keyof Omit<PopBody, 'acks'>]: unknown }

/** Reads a query string, where every value is text. Unknown parameters are ignored. */
export function readPopQuery(query: PopFields, limits: Limits = defaultLimits): PopOptions {
  return readPopOrFaults(query, limits, { integer: parseDecimal, boolean: parseBoolean })
}

/** Reads a body, where values already have their types. */
export function readPopBody(body: PopFields, limits: Limits = defaultLimits): PopOptions {
  return readPopOrFaults(body, limits, { integer: checkInteger, boolean: checkBoolean })
}

interface Readers {
  readonly integer: (field: string, value: unknown, range: Range) => number
  readonly boolean: (field: string, value: unknown) => boolean
}

const fieldNames = Object.keys(PopQuerySchema.properties) as (keyof PopFields)[]

/** Each field is read separately to find all invalid ones. */
function readPopOrFaults(fields: PopFields, limits: Limits, read: Readers): PopOptions {
  try {
    return checkTogether(readPop(fields, limits, read), limits)
  } catch (error) {
    const alone = fieldNames.map((name) => () => readPop({ [name]: fields[name] }, limits, read))
    throw allFaults(error, alone)
  }
}

/** The fields of a lease per message depend on each other, so they are checked together. */
function checkTogether(options: PopOptions, limits: Limits): PopOptions {
  const { autoAck, batch, leasePerMessage } = options
  if (!leasePerMessage) return options
  if (autoAck) {
    throw fieldError('invalid_request', 'leasePerMessage', 'and autoAck cannot both be given')
  }
  if (batch > limits.leasesPerMessageMax) {
    const reason = `must be at most ${limits.leasesPerMessageMax} with leasePerMessage`
    throw fieldError('invalid_request', 'batch', reason)
  }
  return options
}

function readPop(fields: PopFields, limits: Limits, read: Readers): PopOptions {
  const { batch, wait, timeout, consumerGroup, autoAck, partitions, leaseSeconds } = fields
  const integer = (field: string, value: unknown, min: number, max: number): number | undefined =>
    value === undefined ? undefined : read.integer(field, value, { min, max })
  const boolean = (field: string, value: unknown): boolean =>
    value === undefined ? false : read.boolean(field, value)
  return {
    batch: integer('batch', batch, 1, limits.batchMax) ?? requestDefaults.batch,
    wait: boolean('wait', wait),
    timeoutMs:
      integer('timeout', timeout, 0, limits.popTimeoutMsMax) ?? requestDefaults.popTimeoutMs,
    consumerGroup:
      consumerGroup === undefined
        ? requestDefaults.consumerGroup
        : parseConsumerGroup(consumerGroup),
    consumer: fields.consumer === undefined ? undefined : parseConsumer(fields.consumer),
    autoAck: boolean('autoAck', autoAck),
    partitions:
      integer('partitions', partitions, 1, limits.partitionsMax) ?? requestDefaults.partitions,
    subscription: readSubscription(fields),
    leaseSeconds: integer('leaseSeconds', leaseSeconds, 1, limits.leaseSecondsMax),
    leasePerMessage: boolean('leasePerMessage', fields.leasePerMessage),
    namespace: isAbsent(fields.namespace) ? undefined : parseNamespace(fields.namespace),
    task: isAbsent(fields.task) ? undefined : parseTask(fields.task),
  }
}

/**
 * `subscriptionFrom` is more specific, so it takes precedence over `subscriptionMode`. Both must be valid.
 */
function readSubscription(fields: PopFields): PopOptions['subscription'] {
  const { subscriptionMode, subscriptionFrom } = fields
  const mode =
    subscriptionMode === undefined
      ? 'all'
      : parseChoice('subscriptionMode', withoutAlias(subscriptionMode), subscriptionModes)
  if (subscriptionFrom === undefined) return mode
  if (subscriptionFrom === 'now') return 'new'
  return { fromMs: parseTime('subscriptionFrom', subscriptionFrom) }
}

function withoutAlias(mode: unknown): unknown {
  const aliases: Readonly<Record<string, string>> = subscriptionModeAliases
  return typeof mode === 'string' && Object.hasOwn(aliases, mode) ? aliases[mode] : mode
}

/** Existing clients send an empty namespace or task for an absent one. */
function isAbsent(name: unknown): boolean {
  return name === undefined || name === ''
}

function checkInteger(field: string, value: unknown, { min, max }: Range): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) {
    return value
  }
  throw fieldError('invalid_request', field, `must be an integer from ${min} to ${max}`)
}

function checkBoolean(field: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw fieldError('invalid_request', field, 'must be true or false')
}
