// The address of the database: one server, or several of which one accepts writes.
//
//   postgres://user@one:5432,two:5432/rouse?target_session_attrs=read-write
//
// The syntax is that of libpq. The default differs: several hosts mean read-write unless the URL says `any`,
// because Rouse writes and cannot use a standby.
import { DatabaseHostError } from './database-host-error.ts'

export interface DatabaseHost {
  /** Used in messages, because the URL may contain a password. */
  readonly name: string
  readonly url: string
}

export interface ConnectionTarget {
  readonly hosts: readonly DatabaseHost[]
  /** Whether only a server that accepts writes may be used. */
  readonly readWrite: boolean
}

const hostsMax = 16
const attribute = 'target_session_attrs'
const shape = /^(postgres(?:ql)?:\/\/)(?:([^/?#]*)@)?([^/?#@]*)([^?#]*)(?:\?([^#]*))?$/

export function parseConnectionTarget(url: string): ConnectionTarget {
  const parts = shape.exec(url)
  // A URL of another form, such as a socket, names one server and is passed to pg unchanged.
  if (parts === null) return { hosts: [{ name: 'the database', url }], readWrite: false }
  const [, scheme = '', user, authority = '', path = '', query = ''] = parts
  const names = authority.split(',')
  if (names.length > hostsMax) refuse(`names more than ${hostsMax} hosts`)
  if (names.length > 1 && names.includes('')) refuse('names an empty host')
  const parameters = query
    .split('&')
    .filter((one) => one !== '' && !one.startsWith(`${attribute}=`))
  const rest = parameters.length === 0 ? path : `${path}?${parameters.join('&')}`
  const login = user === undefined ? '' : `${user}@`
  return {
    hosts: names.map((name) => ({ name, url: `${scheme}${login}${name}${rest}` })),
    readWrite: readAttribute(query) ?? names.length > 1,
  }
}

function readAttribute(query: string): boolean | undefined {
  const given = query.split('&').find((one) => one.startsWith(`${attribute}=`))
  if (given === undefined) return undefined
  const value = given.slice(attribute.length + 1)
  if (value === 'any') return false
  if (value === 'read-write' || value === 'primary') return true
  return refuse(`has ${attribute}=${value}; use read-write, primary or any`)
}

/** Does not repeat the URL: it may contain a password. */
function refuse(problem: string): never {
  throw new DatabaseHostError('bad_target', `the address of the database ${problem}`)
}
