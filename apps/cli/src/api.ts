// Calls the HTTP API and turns failures into one-line messages.
import { CliError } from './cli-error.ts'
import { parseExact, stringifyExact } from './exact-json.ts'
import { authorizationOf, withoutCredentials } from './url-credentials.ts'
import { version } from './version.ts'

// biome-ignore lint/suspicious/noExplicitAny: verbs print responses of every shape
export type Json = any

export interface ApiAnswer {
  readonly status: number
  readonly body: Json
}

interface CallOptions {
  readonly timeoutMs?: number
}

const timeoutMsDefault = 30_000

export class Api {
  /** Without credentials, so that it can be printed. */
  readonly url: string
  /** The headers that every request has. */
  readonly headers: Readonly<Record<string, string>>

  constructor(url: string, token?: string) {
    const shown = withoutCredentials(url)
    const parsed = URL.canParse(url) ? new URL(url) : undefined
    if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
      throw new CliError(
        'usage',
        `${JSON.stringify(shown)} is not a URL of a node, such as http://127.0.0.1:4600`,
      )
    }
    const basic = authorizationOf(parsed)
    if (basic !== undefined && token !== undefined) {
      throw new CliError(
        'usage',
        'both the URL and a token have credentials, and a request can have only one of them',
      )
    }
    const authorization = basic ?? (token === undefined ? undefined : `Bearer ${token}`)
    this.url = shown.replace(/\/+$/, '')
    this.headers = {
      'user-agent': `rouse-cli/${version}`,
      ...(authorization === undefined ? {} : { authorization }),
    }
  }

  get(path: string, options: CallOptions = {}): Promise<ApiAnswer> {
    return this.#ask('GET', path, undefined, options)
  }

  /** Reads all pages of a list. */
  async all(path: string, list: string, options: CallOptions = {}): Promise<Json[]> {
    const found: Json[] = []
    let cursor: string | undefined
    do {
      const separator = path.includes('?') ? '&' : '?'
      const more = cursor === undefined ? '' : `${separator}cursor=${encodeURIComponent(cursor)}`
      const { body } = await this.get(`${path}${more}`, options)
      found.push(...body[list])
      cursor = body.cursor ?? undefined
    } while (cursor !== undefined)
    return found
  }

  /** Like `get`, but undefined if what the path names does not exist. */
  async find(path: string, options: CallOptions = {}): Promise<Json> {
    try {
      return (await this.get(path, options)).body
    } catch (error) {
      if (error instanceof CliError && error.status === 404) return undefined
      throw error
    }
  }

  post(path: string, body?: unknown): Promise<ApiAnswer> {
    return this.#ask('POST', path, body)
  }

  put(path: string, body: unknown): Promise<ApiAnswer> {
    return this.#ask('PUT', path, body)
  }

  delete(path: string): Promise<ApiAnswer> {
    return this.#ask('DELETE', path)
  }

  async #ask(
    method: string,
    path: string,
    body?: unknown,
    { timeoutMs = timeoutMsDefault }: CallOptions = {},
  ): Promise<ApiAnswer> {
    let response: Response
    let text: string
    try {
      response = await fetch(`${this.url}${path}`, {
        method,
        signal: AbortSignal.timeout(timeoutMs),
        headers: {
          ...this.headers,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: stringifyExact(body) }),
      })
      text = await response.text()
    } catch (error) {
      throw new CliError('unreachable', `no node answers at ${this.url} (${reasonOf(error)})`)
    }
    if (response.ok) return { status: response.status, body: readBody(text) }
    throw failureOf(response.status, text)
  }
}

/** Encodes a path segment: names may contain any character. */
export function segment(name: string): string {
  return encodeURIComponent(name)
}

export function query(
  values: Readonly<Record<string, string | number | boolean | undefined>>,
): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined)
  if (given.length === 0) return ''
  return `?${new URLSearchParams(Object.fromEntries(given.map(([name, value]) => [name, String(value)]))).toString()}`
}

function readBody(text: string): Json {
  if (text === '') return undefined
  try {
    return parseExact(text)
  } catch {
    throw new CliError('server', 'the response is not JSON; is this a Rouse node?')
  }
}

/** A proxy in front of the node may answer with a page instead of a problem document. */
function failureOf(status: number, text: string): CliError {
  let problem: Json
  try {
    problem = JSON.parse(text)
  } catch {
    problem = undefined
  }
  const detail = detailOf(problem) ?? `the server answered ${status}`
  if (status === 401) {
    const help = 'set ROUSE_TOKEN, ROUSE_TOKEN_FILE or --token'
    return new CliError('server', `${detail}; ${help}`, status)
  }
  const code = problem?.code === undefined ? '' : ` (${problem.code})`
  return new CliError('server', `${detail}${code}`, status)
}

const errorsShownMax = 5

/** All faults that the server found, with the names that were probably meant. */
function detailOf(problem: Json): string | undefined {
  const { detail, title, errors = [], leaseExpiresAt } = problem ?? {}
  if (errors.length > 1) {
    const all = errors.map(({ field, message }: Json) => `${field} ${message}`)
    return all.slice(0, errorsShownMax).join('; ')
  }
  const meant = errors[0]?.suggestion
  const known = detail ?? title
  if (meant !== undefined && !known.includes('did you mean'))
    return `${known}; did you mean ${meant}?`
  return leaseExpiresAt === undefined ? known : `${known} until ${leaseExpiresAt}`
}

function reasonOf(error: unknown): string {
  const { name, cause, message } = error as Error & { cause?: { code?: string } }
  return name === 'TimeoutError' ? 'no answer in time' : (cause?.code ?? message)
}
