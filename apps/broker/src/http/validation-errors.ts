// Finds all validation errors of a body or a query. Fastify's validator stops at the first error, which is cheap. Only a
// rejected body is then walked together with its schema to find the other errors. The walk descends only into
// invalid parts and limits the number of errors and values, so a huge body with one error costs little more
// than a valid one.
import { fieldErrorsMax } from '@rouse/protocol'
import type { FastifyError, FastifyRequest } from 'fastify'

export interface SchemaFault {
  readonly instancePath: string
  readonly message?: string
  readonly params: Readonly<Record<string, unknown>>
}

type Check = ((value: unknown) => unknown) & { errors?: readonly SchemaFault[] | null }

/** The part of Fastify's validator that is used here. */
interface Compiler {
  compile(schema: object): Check
}

interface Schema {
  readonly items?: Schema
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: unknown
  readonly if?: Schema
  readonly then?: Schema
  readonly else?: Schema
  /** Present on a field that must be absent: the description says why. */
  readonly not?: Schema
  readonly description?: string
}

/** A push may have 10,000 items. */
const valuesMax = 15_000

export interface FaultFinder {
  /** Receives the validator when Fastify creates it. */
  use(made: Compiler): void
  /** Adds all other errors to an error. */
  complete(error: unknown, request: FastifyRequest): unknown
}

export function createFaultFinder(): FaultFinder {
  let compiler: Compiler | undefined
  return {
    use(made) {
      compiler = made
    },
    complete(error, request) {
      if (compiler === undefined || !isRefused(error)) return error
      const isQuery = error.validationContext === 'querystring'
      const schema = request.routeOptions.schema?.[isQuery ? 'querystring' : 'body']
      if (typeof schema !== 'object') return error
      const value = isQuery ? request.query : request.body
      error.validation = findFaults(compiler, schema as Schema, value)
      return error
    },
  }
}

type Refused = Error &
  Pick<FastifyError, 'validationContext'> & {
    validation: NonNullable<FastifyError['validation']> | SchemaFault[]
  }

function isRefused(error: unknown): error is Refused {
  return error instanceof Error && 'validation' in error && Array.isArray(error.validation)
}

export function findFaults(compiler: Compiler, schema: Schema, body: unknown): SchemaFault[] {
  const faults: SchemaFault[] = []
  let valueCount = 0
  const isOver = () => faults.length >= fieldErrorsMax || valueCount >= valuesMax

  /** Adds an error for each invalid part of a value, or one for the value itself if all parts are valid. */
  function walk(part: Schema, value: unknown, path: string): void {
    if (isOver()) return
    valueCount += 1
    const check = compiler.compile(part)
    if (check(value) === true) return
    if (part.not !== undefined) {
      faults.push({ instancePath: path, message: part.description ?? 'is not allowed', params: {} })
      return
    }
    const first = check.errors?.[0]
    const before = faults.length
    if (Array.isArray(value)) walkItems(part, value, path)
    else if (typeof value === 'object' && value !== null) walkFields(part, value, path)
    if (faults.length === before && part.if !== undefined) {
      walk((compiler.compile(part.if)(value) === true ? part.then : part.else) ?? {}, value, path)
    }
    if (faults.length === before && first !== undefined) {
      faults.push({ ...first, instancePath: path + first.instancePath })
    }
  }

  function walkItems({ items }: Schema, values: readonly unknown[], path: string): void {
    if (items === undefined) return
    for (let i = 0; i < values.length && !isOver(); i += 1) walk(items, values[i], `${path}/${i}`)
  }

  function walkFields(part: Schema, value: object, path: string) {
    const { required = [], properties = {} } = part
    if (part.additionalProperties === false) {
      for (const name of Object.keys(value)) {
        if (isOver() || Object.hasOwn(properties, name)) continue
        const params = { additionalProperty: name, ...namesIn(properties) }
        faults.push({ instancePath: path, params })
      }
    }
    for (const name of required) {
      if (isOver() || Object.hasOwn(value, name)) continue
      faults.push({ instancePath: path, params: { missingProperty: name } })
    }
    for (const [name, schema] of Object.entries(properties)) {
      if (!Object.hasOwn(value, name)) continue
      walk(schema, (value as Record<string, unknown>)[name], `${path}/${name}`)
    }
  }

  walk(schema, body, '')
  return faults
}

/** The names that a field may have, and those of the next level with their path, for suggestions. */
function namesIn(properties: Readonly<Record<string, Schema>>) {
  const nested = Object.entries(properties).flatMap(([name, { properties: own, items }]) => [
    ...Object.keys(own ?? {}).map((one) => `${name}.${one}`),
    ...Object.keys(items?.properties ?? {}).map((one) => `${name}[].${one}`),
  ])
  return { known: Object.keys(properties), nested }
}
