// Refuses to start a node that others can reach if it has no way to authenticate them.
import { isLoopback } from '@rouse/gossip'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/config-error.ts'
import type { Logger } from '../log.ts'

type Settings = Pick<Config, 'host' | 'insecure' | 'tlsClientCa' | 'oidcIssuer'>

/** Whether requests need a credential, because there is something that clients can show. */
function isClosed(config: Settings, hasKeys: boolean): boolean {
  return hasKeys || hasOtherCredentials(config) || !isLoopback(config.host)
}

function hasOtherCredentials({ tlsClientCa, oidcIssuer }: Settings): boolean {
  return tlsClientCa !== undefined || oidcIssuer !== undefined
}

/** Logs who is served, or why the node does not start. */
export function mayStart(config: Settings, hasKeys: boolean, log: Logger): boolean {
  const fault = closedStartFault(config, hasKeys)
  if (fault !== undefined) {
    log.fatal(fault.message)
    return false
  }
  switch (accessOf(config, hasKeys)) {
    case 'insecure':
      log.warn('ROUSE_INSECURE is set: requests without credentials may do everything')
      break
    case 'loopback':
      log.info('there is no API key: on loopback, requests without credentials may do everything')
      break
    case 'keys':
      break
  }
  return true
}

/** The reason not to start: an address that others can reach, and no key that they could show. */
function closedStartFault(config: Settings, hasKeys: boolean): ConfigError | undefined {
  const { host, insecure } = config
  if (insecure || hasKeys || hasOtherCredentials(config) || isLoopback(host)) return undefined
  const problem =
    `is ${host}, which other machines can reach, and there is no API key. ` +
    'Create the first one with "rouse keys create admin --preset admin", with the ROUSE_DATABASE_URL of this node; ' +
    'or set ROUSE_INITIAL_ADMIN_KEY_FILE. ROUSE_INSECURE=1 serves everyone without a key'
  return new ConfigError('ROUSE_HOST', problem)
}

/** Who is served, for `/stats`. */
export function accessOf(config: Settings, hasKeys: boolean): 'insecure' | 'loopback' | 'keys' {
  if (config.insecure) return 'insecure'
  return isClosed(config, hasKeys) ? 'keys' : 'loopback'
}
