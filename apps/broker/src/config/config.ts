// The only file that reads the environment. Precedence: defaults < file < environment < flags. Unknown names
// are rejected.
import cluster from 'node:cluster'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { parseConnectionTarget } from '@rouse/database'
import { checkAdvertise, checkNodeId, checkPeers, checkSecrets } from '@rouse/gossip'
import { apiKeyId } from '../auth/api-key.ts'
import { isTrustedUrl } from '../auth/oidc/issuer-document.ts'
import { readEncryptionKeys } from '../encryption/payload-cipher.ts'
import { checkOrigins } from '../http/cors.ts'
import { checkAddresses } from './address-checks.ts'
import { ConfigError } from './config-error.ts'
import { leastConnections } from './connections.ts'
import { type Setting, wordsOf } from './setting.ts'
import { queueDefaultSettings, settings } from './settings.ts'
import { suggestion } from './suggestion.ts'

type Values<Table extends Record<string, Setting<unknown>>> = {
  readonly [Key in keyof Table]: Table[Key]['fallback']
}

export type Config = Omit<Values<typeof settings>, 'databaseUrl' | 'nodeId'> & {
  readonly databaseUrl: string
  readonly nodeId: string
  /** Contains only the defaults that were set. */
  readonly queueDefaults: Readonly<Record<string, unknown>>
}

export interface ConfigRequest {
  readonly config: Config
  /** Print the configuration and exit. */
  readonly checkOnly: boolean
  /** Whether a flag holds a secret, which everyone on the machine could read in the arguments of the process. */
  readonly hasSecretFlag: boolean
}

export interface ConfigSources {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly args: readonly string[]
  readonly readFile: (path: string) => string
  /** A worker does not read the secrets of the primary, so it can start while their files are being replaced. */
  readonly isWorker: boolean
}

const all: Readonly<Record<string, Setting<unknown>>> = {
  ...settings,
  ...Object.fromEntries(
    Object.entries(queueDefaultSettings).map(([name, setting]) => [defaultKey(name), setting]),
  ),
}

/** Secrets that only the primary uses. */
const primaryOnly: readonly string[] = ['gossipSecret', 'initialAdminKey', 'migrateUrl']

export function loadConfig(sources: Partial<ConfigSources> = {}): ConfigRequest {
  const env = sources.env ?? process.env
  const readFile = sources.readFile ?? ((path) => readFileSync(path, 'utf8'))
  const isWorker = sources.isWorker ?? cluster.isWorker
  const flags = readFlags(sources.args ?? process.argv.slice(2))
  refuseUnknown(env)
  const path = flags.values.get('config') ?? env.ROUSE_CONFIG
  const file = path === undefined ? {} : readConfigFile(path, readFile)
  const values: Record<string, unknown> = {}
  for (const [key, setting] of Object.entries(all)) {
    if (isWorker && primaryOnly.includes(key)) continue
    values[key] = resolve(key, setting, { file, env, flags: flags.values, readFile })
  }
  const config = complete(values, isWorker ? process.ppid : process.pid)
  if (!isWorker) {
    checkAddresses(config)
    checkGossip(config)
  }
  const hasSecretFlag = Object.values(all).some(
    ({ env: name, secret }) => secret && flags.values.has(flagName(name)),
  )
  return { config, checkOnly: flags.checkOnly, hasSecretFlag }
}

/** The output of `--check-config`: environment names, with secrets masked. */
export function describeConfig(config: Config): string {
  const values: Record<string, unknown> = { ...config }
  for (const [name, value] of Object.entries(config.queueDefaults)) values[defaultKey(name)] = value
  const lines = Object.entries(all)
    .filter(([key]) => values[key] !== undefined)
    .map(([key, setting]) => [setting.env, setting.secret ? mask(values[key]) : values[key]])
  return JSON.stringify(Object.fromEntries(lines), null, 2)
}

/** Every setting: its flag, its name in the environment and its default, for help. */
export function describeSettings(): { flag: string; env: string; fallback: string | undefined }[] {
  return Object.values(all).map(({ env, fallback }: Setting<unknown>) => ({
    flag: `--${flagName(env)}`,
    env,
    fallback: shownDefault(fallback),
  }))
}

function shownDefault(value: unknown): string | undefined {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return undefined
  return Array.isArray(value) ? value.join(',') : JSON.stringify(value).replaceAll('"', '')
}

/** A Kubernetes service named rouse sets `ROUSE_PORT=tcp://10.0.0.1:4600`, which is not a setting. */
function isServiceLink(name: string, value = ''): boolean {
  return name.endsWith('PORT') && /^(tcp|udp|sctp):\/\//.test(value)
}

interface Layers {
  readonly file: Readonly<Record<string, unknown>>
  readonly env: ConfigSources['env']
  readonly flags: ReadonlyMap<string, string>
  readonly readFile: ConfigSources['readFile']
}

function resolve(key: string, setting: Setting<unknown>, layers: Layers): unknown {
  const flag = layers.flags.get(flagName(setting.env))
  if (flag !== undefined) return setting.parse(flag)
  const fileFlag = layers.flags.get(`${flagName(setting.env)}-file`)
  if (fileFlag !== undefined) return setting.parse(readSecret(setting, fileFlag, layers))
  const fromEnv = layers.env[setting.env]
  const path = setting.secret ? layers.env[`${setting.env}_FILE`] : undefined
  if (fromEnv && path) {
    throw new ConfigError(setting.env, `and ${setting.env}_FILE are both set`)
  }
  // Compose files and shells express "not set" as an empty variable.
  if (fromEnv !== undefined && fromEnv !== '' && !isServiceLink(setting.env, fromEnv)) {
    return setting.parse(fromEnv)
  }
  if (path) return setting.parse(readSecret(setting, path, layers))
  return Object.hasOwn(layers.file, key) ? setting.check(layers.file[key]) : setting.fallback
}

function readSecret(setting: Setting<unknown>, path: string, { readFile }: Layers): string {
  try {
    return readFile(path).replace(/\r?\n$/, '')
  } catch {
    throw new ConfigError(`${setting.env}_FILE`, `names an unreadable file: ${path}`)
  }
}

function complete(values: Record<string, unknown>, primaryPid: number): Config {
  const { databaseUrl } = values
  if (databaseUrl === undefined) throw new ConfigError('ROUSE_DATABASE_URL', 'is not set')
  if (typeof databaseUrl !== 'string' || !/^postgres(ql)?:\/\//.test(databaseUrl)) {
    throw new ConfigError('ROUSE_DATABASE_URL', 'must be a postgres:// URL')
  }
  checkTarget('ROUSE_DATABASE_URL', databaseUrl)
  if (typeof values.listenUrl === 'string') checkTarget('ROUSE_LISTEN_URL', values.listenUrl)
  if (typeof values.migrateUrl === 'string') checkTarget('ROUSE_MIGRATE_URL', values.migrateUrl)
  if (Number(values.popWaitMaxIntervalMs) < Number(values.popWaitBaseIntervalMs)) {
    throw new ConfigError('POP_WAIT_MAX_INTERVAL_MS', 'is less than POP_WAIT_BASE_INTERVAL_MS')
  }
  checkConnections(values)
  checkEncryption(values)
  checkInitialKey(values)
  checkIssuer(values)
  checkOrigins(values.corsOrigins as readonly string[])
  const queueDefaults: Record<string, unknown> = {}
  for (const name of Object.keys(queueDefaultSettings)) {
    const value = values[defaultKey(name)]
    if (value !== undefined) queueDefaults[name] = value
    delete values[defaultKey(name)]
  }
  // With port 0 the process id distinguishes the nodes of a machine.
  const place = values.port === 0 ? primaryPid : values.port
  const nodeId = values.nodeId ?? `${hostname()}-${String(place)}`
  return { ...values, databaseUrl, nodeId, queueDefaults } as unknown as Config
}

/** The URL may list several hosts, of which one accepts writes; see docs/failover.md. */
function checkTarget(name: string, url: string): void {
  try {
    parseConnectionTarget(url)
  } catch (error) {
    throw new ConfigError(name, (error as Error).message)
  }
}

/** Applies gossip's own rules, so that a node with a bad setting fails before it opens the database. */
function checkGossip(config: Config): void {
  const { nodeId, gossipSecret, gossipHost, gossipPeers, gossipAdvertise } = config
  const check = (name: string, rule: () => void, problem = 'cannot be used'): void => {
    try {
      rule()
    } catch (error) {
      throw new ConfigError(name, `${problem}. ${(error as Error).message}`)
    }
  }
  check('ROUSE_NODE_ID', () => checkNodeId(nodeId))
  check('ROUSE_GOSSIP_PEERS', () => checkPeers(gossipPeers))
  if (gossipAdvertise !== undefined) {
    check('ROUSE_GOSSIP_ADVERTISE', () => checkAdvertise(gossipAdvertise))
  }
  check(
    'ROUSE_GOSSIP_SECRET',
    () => checkSecrets(wordsOf(gossipSecret ?? ''), gossipHost),
    gossipSecret === undefined ? 'is not set' : undefined,
  )
}

function checkConnections(values: Record<string, unknown>): void {
  const { connectionsMax, poolMax, workers } = values as Partial<Record<string, number>>
  if (connectionsMax === undefined || workers === undefined) return
  if (poolMax !== undefined) {
    const problem = 'and ROUSE_POOL_MAX are both set; ROUSE_POOL_MAX is deprecated, so remove it'
    throw new ConfigError('ROUSE_CONNECTIONS_MAX', problem)
  }
  const least = leastConnections(workers)
  if (connectionsMax >= least) return
  const problem = `is ${connectionsMax}, but ${workers} workers need at least ${least}: raise it, or lower ROUSE_WORKERS`
  throw new ConfigError('ROUSE_CONNECTIONS_MAX', problem)
}

/** A node with an invalid key would reject every push to an encrypted queue, so it does not start. */
function checkEncryption({
  encryptionKey,
  defaultEncryptionEnabled,
}: Record<string, unknown>): void {
  if (typeof encryptionKey !== 'string') {
    if (defaultEncryptionEnabled !== true) return
    const problem = 'is not set, but ROUSE_DEFAULT_ENCRYPTION_ENABLED requires it'
    throw new ConfigError('ROUSE_ENCRYPTION_KEY', problem)
  }
  try {
    readEncryptionKeys(encryptionKey)
  } catch (error) {
    throw new ConfigError('ROUSE_ENCRYPTION_KEY', (error as Error).message)
  }
}

function checkInitialKey({ initialAdminKey }: Record<string, unknown>): void {
  if (typeof initialAdminKey !== 'string' || apiKeyId(initialAdminKey) !== undefined) return
  const problem = 'is not an API key; "rouse keys generate" prints one'
  throw new ConfigError('ROUSE_INITIAL_ADMIN_KEY', problem)
}

function checkIssuer({ oidcIssuer, oidcAudience, oidcClientId }: Record<string, unknown>): void {
  if (oidcIssuer === undefined && oidcAudience === undefined) {
    if (oidcClientId === undefined) return
    throw new ConfigError('ROUSE_OIDC_CLIENT_ID', 'needs ROUSE_OIDC_ISSUER and ROUSE_OIDC_AUDIENCE')
  }
  if (oidcIssuer === undefined || oidcAudience === undefined) {
    const missing = oidcIssuer === undefined ? 'ROUSE_OIDC_ISSUER' : 'ROUSE_OIDC_AUDIENCE'
    throw new ConfigError(missing, 'is not set, but ROUSE_OIDC_ISSUER and its audience go together')
  }
  if (isTrustedUrl(oidcIssuer)) return
  throw new ConfigError(
    'ROUSE_OIDC_ISSUER',
    'must be a URL that begins with https://, or with http:// and a loopback address',
  )
}

/** `--name value`, `--name=value`, `--check-config`. */
function readFlags(args: readonly string[]): { values: Map<string, string>; checkOnly: boolean } {
  const known = Object.values(all).flatMap(({ env, secret }) =>
    secret ? [flagName(env), `${flagName(env)}-file`] : [flagName(env)],
  )
  known.push('config')
  const values = new Map<string, string>()
  let checkOnly = false
  for (let i = 0; i < args.length; i += 1) {
    const [, name = '', inline] = /^--([^=]*)(?:=(.*))?$/s.exec(args[i] as string) ?? []
    if (name === 'check-config' && inline === undefined) {
      checkOnly = true
      continue
    }
    if (!known.includes(name)) {
      throw new ConfigError(args[i] as string, `is an unknown flag${suggestion(name, known, '--')}`)
    }
    const value = inline ?? args[(i += 1)]
    if (value === undefined) throw new ConfigError(`--${name}`, 'needs a value')
    values.set(name, value)
  }
  return { values, checkOnly }
}

/**
 * Variables of other programs with our prefix: the client, the tests, and Kubernetes service links. Links
 * that end in PORT are recognised by their value; otherwise a mistyped setting would pass as a link.
 */
const foreign = /^ROUSE_(URL$|TOKEN$|TOKEN_FILE$|TEST_|.*(SERVICE_HOST$|SERVICE_PORT(_|$)|PORT_\d))/

function refuseUnknown(env: ConfigSources['env']): void {
  const known = Object.values(all).flatMap(({ env: name, secret }) =>
    secret ? [name, `${name}_FILE`] : [name],
  )
  known.push('ROUSE_CONFIG')
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith('ROUSE_') || known.includes(name) || foreign.test(name)) continue
    if (isServiceLink(name, value)) continue
    throw new ConfigError(name, `is an unknown setting${suggestion(name, known)}`)
  }
}

function readConfigFile(
  path: string,
  readFile: ConfigSources['readFile'],
): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(readFile(path))
  } catch (error) {
    throw new ConfigError('ROUSE_CONFIG', `cannot be read: ${(error as Error).message}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ConfigError('ROUSE_CONFIG', 'must contain a JSON object')
  }
  const known = Object.keys(all)
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue
    throw new ConfigError(
      'ROUSE_CONFIG',
      `contains an unknown key "${key}"${suggestion(key, known)}`,
    )
  }
  return value as Record<string, unknown>
}

function flagName(env: string): string {
  return env
    .replace(/^ROUSE_/, '')
    .toLowerCase()
    .replaceAll('_', '-')
}

/** The name in a file, such as `defaultLeaseTime`. */
function defaultKey(option: string): string {
  return `default${option.charAt(0).toUpperCase()}${option.slice(1)}`
}

/** Masks the password of a URL, and every other secret completely. */
function mask(value: unknown): string {
  const url = /^([a-z]+:\/\/[^:@/]*)(:[^@]*)?(@.*)?$/is.exec(String(value))
  if (url === null) return '***'
  const [, start = '', password, rest = ''] = url
  return `${start}${password === undefined ? '' : ':***'}${rest}`
}
