// The W3C header that connects spans of several programs: `00-<trace id>-<span id>-<flags>`.

export interface TraceParent {
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
}

const form = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

/** Undefined if the value is absent or not valid: a wrong header must not make a push fail. */
export function readTraceParent(value: unknown): TraceParent | undefined {
  const [, traceId, spanId, flags] = (typeof value === 'string' ? form.exec(value) : null) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function writeTraceParent({ traceId, spanId, isSampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

/** Adds the header to the headers of a message, which are JSON text, unless it has one. */
export function withTraceParent(headers: string | undefined, value: string): string {
  const field = `"traceparent":${JSON.stringify(value)}`
  if (headers === undefined) return `{${field}}`
  const given: unknown = JSON.parse(headers)
  if (typeof given !== 'object' || given === null || 'traceparent' in given) return headers
  const end = headers.lastIndexOf('}')
  const comma = Object.keys(given).length === 0 ? '' : ','
  return `${headers.slice(0, end)}${comma}${field}}`
}

/** The trace of a message, from its stored headers. */
export function traceOfHeaders(headers: string | null): TraceParent | undefined {
  if (headers === null || !headers.includes('"traceparent"')) return undefined
  const given = JSON.parse(headers) as { readonly traceparent?: unknown } | null
  return readTraceParent(given?.traceparent)
}
