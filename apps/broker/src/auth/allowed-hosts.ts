// A page of another site can make its own name resolve to the address of a node, and then counts as the same site
// for the browser. It still sends its name in the Host header, so a node that serves requests without credentials
// answers only to names that are its own. Addresses are allowed: no page is loaded from one by accident.
import { isIP } from 'node:net'
import type { Config } from '../config/config.ts'

const knownMax = 100

export function createHostCheck(
  config: Pick<Config, 'advertiseUrl' | 'allowedHosts'>,
): (host: string | undefined) => boolean {
  const { advertiseUrl, allowedHosts } = config
  const names = new Set(['localhost', ...allowedHosts.map((name) => name.toLowerCase())])
  if (advertiseUrl !== undefined) names.add(new URL(advertiseUrl).hostname.toLowerCase())
  /** Results by header, because most requests have the same one. */
  const known = new Map<string, boolean>()

  function check(host: string): boolean {
    const name = nameOf(host)
    return isIP(name) !== 0 || names.has(name) || name.endsWith('.localhost')
  }

  return (host) => {
    // Browsers always send the header.
    if (host === undefined) return true
    const last = known.get(host)
    if (last !== undefined) return last
    const isAllowed = check(host)
    if (known.size >= knownMax) known.clear()
    known.set(host, isAllowed)
    return isAllowed
  }
}

/** Without port, brackets and the dot of the root. */
function nameOf(host: string): string {
  const name = /^\[(.*)\](?::\d*)?$/.exec(host)?.[1] ?? host.replace(/:\d*$/, '')
  return name.toLowerCase().replace(/\.$/, '')
}
