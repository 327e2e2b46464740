// Finds all validation errors of a body. Fastify's validator stops at the first error, which is cheap. Only a
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
  readonly if?: Schema
  readonly then?: Schema
  readonly else?: Schema
}

const valuesMax = 10_000

/** `use` receives the validator when Fastify creates it. `complete` adds all other errors to an error. */
export function createFaultFinder() {
  let compiler: Compiler | undefined
  return {
    use(made: Compiler): void {
      compiler = made
    },
    complete(error: unknown, request: FastifyRequest): unknown {
      const schema = request.routeOptions.schema?.body
      if (compiler !== undefined && isRefusedBody(error) && typeof schema === 'object') {
        error.validation = findFaults(compiler, schema as Schema, request.body)
      }
      return error
    },
  }
}

type Refused = Error & { validation: NonNullable<FastifyError['validation']> | SchemaFault[] }

function isRefusedBody(error: unknown): error is Refused {
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

  function walkFields({ required = [], properties = {} }: Schema, value: object, path: string) {
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
