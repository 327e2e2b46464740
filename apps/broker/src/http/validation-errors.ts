// The validator stops at the first fault: that is cheap, and enough to refuse. Only then the body is walked beside its
// schema, for the other faults. The walk goes into what is faulty, ends at so many faults, and looks at so many values:
// a huge body that is wrong in one place costs little more than a good one.
import { fieldErrorsMax } from '@rouse/protocol'
import type { FastifyError, FastifyRequest } from 'fastify'

export interface SchemaFault {
  readonly instancePath: string
  readonly message?: string
  readonly params: Readonly<Record<string, unknown>>
}

type Check = ((value: unknown) => unknown) & { errors?: readonly SchemaFault[] | null }

/** What we use of the validator that Fastify made. */
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

const looksMax = 10_000

/** `use` takes the validator when it is there; `complete` gives an error of it all its faults. */
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
  let looks = 0
  const isOver = () => faults.length >= fieldErrorsMax || looks >= looksMax

  /** What is refused as a whole, and in no part that we can name, is one fault. */
  function walk(part: Schema, value: unknown, path: string): void {
    if (isOver()) return
    looks += 1
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
