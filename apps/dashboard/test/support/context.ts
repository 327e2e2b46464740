import type { Browser } from 'playwright-core'
import type { Cluster } from './cluster.ts'

export interface Context {
  readonly cluster: Cluster
  readonly browser: Browser
}

let names = 0

/** A name that no other test uses. */
export function unique(prefix: string): string {
  names += 1
  return `${prefix}-${names}`
}

/** The address of a page of the dashboard. */
export function at(
  url: string,
  page: string,
  query: Readonly<Record<string, string>> = {},
): string {
  const text = new URLSearchParams(query).toString()
  return `${url}/dashboard/#/${page}${text === '' ? '' : `?${text}`}`
}
