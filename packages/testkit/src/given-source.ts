import type { PostgresSource } from './postgres-source.ts'

/** A server that another process starts and stops. */
export function givenSource(url: string): PostgresSource {
  return {
    kind: 'given',
    start: async () => url,
    stop: async () => {},
  }
}
