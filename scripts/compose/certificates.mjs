// Certificates that this machine trusts in addition to Node's roots. A container does not have them, and
// behind a proxy that inspects TLS the build of its image could not reach the registry.
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { rootCertificates } from 'node:tls'

const pem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** As PEM text; empty on most machines. */
export function extraCertificates() {
  const file = process.env.NODE_EXTRA_CA_CERTS
  if (!file) return ''
  const known = new Set(rootCertificates.map(fingerprint))
  const trusted = readFileSync(file, 'utf8').match(pem) ?? []
  return trusted.filter((certificate) => !known.has(fingerprint(certificate))).join('\n')
}

function fingerprint(certificate) {
  return new X509Certificate(certificate).fingerprint256
}
