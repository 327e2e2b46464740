export type { OtelOptions } from './otel.ts'
export { otel } from './otel.ts'
