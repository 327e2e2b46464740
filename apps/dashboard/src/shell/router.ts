// Pages and filters are in the fragment of the address: `#/queues/orders?state=dead`. So the dashboard works under any
// path, and every view can be shared as a link.
import { Store, useStore } from '../api/store.ts'

export interface Route {
  readonly page: string
  /** The decoded parts after the page, such as the name of a queue. */
  readonly names: readonly string[]
  readonly query: Readonly<Record<string, string>>
}

const current = new Store<Route>(parseRoute(location.hash))
addEventListener('hashchange', () => current.set(parseRoute(location.hash)))

export function useRoute(): Route {
  return useStore(current)
}

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?')
  const [page = '', ...names] = path.split('/').map(decode)
  return {
    page: page === '' ? 'overview' : page,
    names: names.filter((name) => name !== ''),
    query: Object.fromEntries(new URLSearchParams(query)),
  }
}

type Query = Readonly<Record<string, string | undefined>>

export function hrefOf(page: string, names: readonly string[] = [], query: Query = {}): string {
  const given = Object.entries(query).filter((one): one is [string, string] => {
    return one[1] !== undefined && one[1] !== ''
  })
  const text = new URLSearchParams(given).toString()
  return `#/${[page, ...names].map(encodeURIComponent).join('/')}${text === '' ? '' : `?${text}`}`
}

export function goTo(href: string): void {
  location.hash = href
}

/** Changes filters in place: typing in a filter does not fill the history. */
export function setQuery(changes: Query): void {
  const { page, names, query } = current.value
  history.replaceState(null, '', hrefOf(page, names, { ...query, ...changes }))
  current.set(parseRoute(location.hash))
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
