import type { PostgresSource } from './postgres-source.ts'

/** A server that somebody else started and will stop. */
export function givenSource(url: string): PostgresSource {
  return {
    kind: 'given',
    start: async () => url,
    stop: async () => {},
  }
}
