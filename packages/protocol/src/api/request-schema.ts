import type { RequestSchema } from './endpoint.ts'

/** The schema with every object closed: a request has no unknown fields. */
export function closed(schema: RequestSchema): object {
  return JSON.parse(JSON.stringify(schema, (_key, value: unknown) => closedPart(value))) as object
}

function closedPart(part: unknown): unknown {
  if (typeof part !== 'object' || part === null || Array.isArray(part)) return part
  const schema = part as Readonly<Record<string, unknown>>
  const isClosed = schema.type === 'object' && 'properties' in schema
  return isClosed ? { additionalProperties: false, ...schema } : schema
}
