// TLS of the HTTP port. The files are read at the start, and again on SIGHUP: connections that exist keep their
// certificate, new ones get the new one.
import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { createSecureContext, type SecureContextOptions, Server as TlsServer } from 'node:tls'
import { ClientCertificates } from '../auth/client-certificates.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/config-error.ts'
import type { Logger } from '../log.ts'

export type TlsSettings = Pick<Config, 'tlsCert' | 'tlsKey' | 'tlsClientCa' | 'tlsClientGrants'>

export interface TlsOptions extends SecureContextOptions {
  readonly minVersion: 'TLSv1.2'
  readonly requestCert: boolean
  readonly rejectUnauthorized: boolean
}

export interface Tls {
  /** Undefined: the server speaks plain HTTP. */
  readonly options: TlsOptions | undefined
  /** Undefined: clients cannot have certificates. */
  readonly certificates: ClientCertificates | undefined
  /** Reads the files again. If they cannot be used, the server keeps what it has. */
  reload(server: Server): void
}

export function openTls(config: TlsSettings, log: Logger): Tls {
  const options = readTls(config)
  const certificates = config.tlsClientCa === undefined ? undefined : new ClientCertificates()
  certificates?.update(readGrants(config))
  return {
    options,
    certificates,
    reload(server) {
      try {
        const next = readTls(config)
        certificates?.update(readGrants(config))
        if (next === undefined || !(server instanceof TlsServer)) return
        server.setSecureContext(next)
        log.info('TLS certificate reloaded')
      } catch (error) {
        const reason = (error as Error).message
        log.error({ reason }, 'could not reload the files of TLS; keeping what was read before')
      }
    },
  }
}

function readGrants({ tlsClientGrants: path }: TlsSettings): string {
  if (path !== undefined) return String(readPem('ROUSE_TLS_CLIENT_GRANTS', path))
  throw new ConfigError('ROUSE_TLS_CLIENT_GRANTS', 'is not set, but ROUSE_TLS_CLIENT_CA is')
}

/** Undefined without a certificate. Throws a ConfigError that names the setting whose file cannot be used. */
export function readTls(config: TlsSettings): TlsOptions | undefined {
  const { tlsCert, tlsKey, tlsClientCa } = config
  if (tlsCert === undefined || tlsKey === undefined) {
    if (tlsCert === undefined && tlsKey === undefined && tlsClientCa === undefined) return undefined
    const missing = tlsCert === undefined ? 'ROUSE_TLS_CERT' : 'ROUSE_TLS_KEY'
    throw new ConfigError(missing, 'is not set, but another setting for TLS is')
  }
  const certificate = {
    minVersion: 'TLSv1.2',
    cert: readPem('ROUSE_TLS_CERT', tlsCert),
    key: readPem('ROUSE_TLS_KEY', tlsKey),
  } as const
  check('ROUSE_TLS_CERT', certificate)
  if (tlsClientCa === undefined) {
    return { ...certificate, requestCert: false, rejectUnauthorized: true }
  }
  const ca = readPem('ROUSE_TLS_CLIENT_CA', tlsClientCa)
  check('ROUSE_TLS_CLIENT_CA', { ca })
  // A client without a certificate may have an API key. Whether a certificate is valid is checked with each request.
  return { ...certificate, ca, requestCert: true, rejectUnauthorized: false }
}

function readPem(setting: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new ConfigError(setting, `names a file that cannot be read (${code}): ${path}`)
  }
}

/** The reason is OpenSSL's and quotes nothing of the file. */
function check(setting: string, options: SecureContextOptions): void {
  try {
    createSecureContext(options)
  } catch (error) {
    throw new ConfigError(setting, `names a file that cannot be used: ${(error as Error).message}`)
  }
}
