// Rejects addresses that cannot be bound or reached, before the node tries to use them.
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { parseAddress } from '@rouse/gossip'
import type { Config } from './config.ts'
import { ConfigError } from './config-error.ts'

type Addresses = Pick<
  Config,
  'host' | 'gossipHost' | 'gossipAdvertise' | 'advertiseUrl' | 'basePath'
>

export function checkAddresses(config: Addresses): void {
  const { host, gossipHost, gossipAdvertise, advertiseUrl, basePath } = config
  checkHost('ROUSE_HOST', host)
  checkHost('ROUSE_GOSSIP_HOST', gossipHost)
  if (gossipAdvertise !== undefined) checkAdvertised(gossipAdvertise)
  if (advertiseUrl !== undefined) checkUrl(advertiseUrl)
  if (basePath !== undefined) checkBasePath(basePath)
}

/** Labels separated by dots. The last label is not only digits: that refuses a mistyped IP address. */
const hostName = /^([a-z0-9_-]{1,63}\.)*(?=[^.]*[a-z_-])[a-z0-9_-]{1,63}\.?$/i

function checkHost(name: string, host: string): void {
  if (isIP(host) !== 0 || hostName.test(host)) return
  const way = host.startsWith('[') ? '; write it without brackets' : ''
  throw new ConfigError(name, `is not an address or host name${way}: ${JSON.stringify(host)}`)
}

/** 0.0.0.0 can be bound but not advertised. */
function checkAdvertised(advertise: string): void {
  const host = parseAddress(advertise)?.host ?? advertise.replace(/^\[(.*)\]$/, '$1')
  if (isIP(host) === 0 || !/^[0:]+(\.0){0,3}$|^::ffff:0\.0\.0\.0$/i.test(host)) return
  const problem = 'can be bound but not advertised: set an address that peers can reach'
  throw new ConfigError('ROUSE_GOSSIP_ADVERTISE', `${problem}: ${JSON.stringify(advertise)}`)
}

function checkUrl(url: string): void {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return
  const problem = 'must be a URL that begins with http:// or https://'
  throw new ConfigError('ROUSE_ADVERTISE_URL', `${problem}: ${JSON.stringify(url)}`)
}

function checkBasePath(path: string): void {
  if (/^(\/[A-Za-z0-9._~-]+)+$/.test(path)) return
  const problem = 'must begin with / and not end with it, such as /rouse'
  throw new ConfigError('ROUSE_BASE_PATH', `${problem}: ${JSON.stringify(path)}`)
}

/** The URL for peers. A server that listens on all interfaces is advertised by its host name. */
export function reachable(url: string, host: string): string {
  if (host !== '0.0.0.0' && host !== '::') return url
  const { protocol, port } = new URL(url)
  return `${protocol}//${hostname()}:${port}`
}
