// Names a setup that lets others in, and how to close it.
import { BlockList, isIP } from 'node:net'
import { type Pool, readLogin, rolesWithoutPrivileges } from '@rouse/storage'
import type { Json } from '../../../api.ts'
import { type Finding, fine, problem, warning } from './finding.ts'

/** Who a node serves. */
export function checkAccess({ node, access }: Json): Finding[] {
  switch (access) {
    case 'insecure':
      return [
        problem(
          'access',
          `${node} serves everyone who reaches it, without a key`,
          'create a key (rouse keys create admin --preset admin), then restart the node without ROUSE_INSECURE',
        ),
      ]
    case 'loopback':
      return [fine('access', `${node} serves everyone on its machine: there is no API key`)]
    default:
      return []
  }
}

/** Whether the API key of this command, and what it reads, can be read on the way to the node. */
export function checkTransport(url: string): Finding[] {
  const { protocol, hostname } = new URL(url)
  if (protocol === 'https:' || isOnMachine(hostname.replace(/^\[(.*)\]$/, '$1'))) return []
  return [
    warning(
      'tls',
      `${url} has no TLS: keys and messages can be read on the way`,
      'set ROUSE_TLS_CERT and ROUSE_TLS_KEY, or put a proxy with TLS before the node, and use https://',
    ),
  ]
}

/** Whether the login of the nodes can change the schema, and whether its connection is encrypted. */
export async function checkLogin(pool: Pool): Promise<Finding[]> {
  const { name, ownsSchema, isEncrypted, serverAddress } = await readLogin(pool)
  const findings = [
    ownsSchema
      ? warning(
          'login',
          `the login ${name} owns the schema, but nodes do not need such a login`,
          'create a login that is a member of rouse_node for ROUSE_DATABASE_URL, and give this one as ROUSE_MIGRATE_URL',
        )
      : fine('login', `the login ${name} does not own the schema`),
  ]
  for (const role of await rolesWithoutPrivileges(pool)) {
    const what = `the role ${role} has no privileges: it was created after the schema`
    findings.push(warning('roles', what, 'run rouse migrate with the login that owns the schema'))
  }
  if (isEncrypted || serverAddress === null || isOnMachine(serverAddress)) return findings
  const what = `the connection to PostgreSQL at ${serverAddress} is not encrypted`
  return [...findings, warning('database-tls', what, 'add ?sslmode=verify-full to the URL')]
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

function isOnMachine(host: string): boolean {
  if (host === 'localhost') return true
  const family = isIP(host)
  return family !== 0 && loopback.check(host, family === 6 ? 'ipv6' : 'ipv4')
}
