import { isLoopback } from '@rouse/gossip'

/** Whether a URL may be trusted to answer for an issuer: https, or http on this machine. */
export function isTrustedUrl(text: unknown): text is string {
  if (typeof text !== 'string' || !URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  if (username !== '' || password !== '') return false
  if (protocol === 'https:') return true
  return protocol === 'http:' && isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'))
}

/** Where an issuer describes itself. */
export function discoveryUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}
