// The context of a span as the text that messages carry: the header `traceparent` of W3C Trace Context.
import { isSpanContextValid, type SpanContext } from '@opentelemetry/api'

const version0 = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/

export function contextOf(traceparent: string | undefined): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = version0.exec(traceparent ?? '') ?? []
  const found = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return isSpanContextValid(found) ? found : undefined
}

export function traceparentOfSpan(span: SpanContext | undefined): string | undefined {
  if (span === undefined || !isSpanContextValid(span)) return undefined
  const flags = span.traceFlags.toString(16).padStart(2, '0')
  return `00-${span.traceId}-${span.spanId}-${flags}`
}
