// Calls the HTTP API and turns failures into one-line messages.
import { CliError } from './cli-error.ts'
import { parseExact, stringifyExact } from './exact-json.ts'

// biome-ignore lint/suspicious/noExplicitAny: verbs print responses of every shape
export type Json = any

export interface ApiAnswer {
  readonly status: number
  readonly body: Json
}

const timeoutMs = 30_000

export class Api {
  readonly url: string
  /** An API key. */
  readonly token: string | undefined

  constructor(url: string, token?: string) {
    const parsed = URL.parse?.(url) ?? parse(url)
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
      throw new CliError(
        'usage',
        `${JSON.stringify(url)} is not a URL of a node, such as http://127.0.0.1:4600`,
      )
    }
    this.url = url.replace(/\/+$/, '')
    this.token = token
  }

  get(path: string, options: { readonly timeoutMs?: number } = {}): Promise<ApiAnswer> {
    return this.#ask('GET', path, undefined, options.timeoutMs)
  }

  /** Reads all pages of a list. */
  async all(path: string, list: string): Promise<Json[]> {
    const found: Json[] = []
    let cursor: string | undefined
    do {
      const { body } = await this.get(`${path}${query({ cursor })}`)
      found.push(...body[list])
      cursor = body.cursor ?? undefined
    } while (cursor !== undefined)
    return found
  }

  post(path: string, body?: unknown): Promise<ApiAnswer> {
    return this.#ask('POST', path, body)
  }

  delete(path: string): Promise<ApiAnswer> {
    return this.#ask('DELETE', path)
  }

  async #ask(method: string, path: string, body?: unknown, ms = timeoutMs): Promise<ApiAnswer> {
    let response: Response
    try {
      response = await fetch(`${this.url}${path}`, {
        method,
        signal: AbortSignal.timeout(ms),
        headers: {
          ...(this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: stringifyExact(body) }),
      })
    } catch (error) {
      throw new CliError('unreachable', `no node answers at ${this.url} (${reasonOf(error)})`)
    }
    const text = await response.text()
    const parsed = text === '' ? undefined : parseJson(text)
    if (response.ok) return { status: response.status, body: parsed }
    const detail = parsed?.detail ?? parsed?.title ?? `the server answered ${response.status}`
    if (response.status === 401) {
      throw new CliError('server', `${detail}; set ROUSE_TOKEN, ROUSE_TOKEN_FILE or --token`)
    }
    throw new CliError(
      'server',
      `${detail}${parsed?.code === undefined ? '' : ` (${parsed.code})`}`,
    )
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

function parse(url: string): URL | null {
  try {
    return new URL(url)
  } catch {
    return null
  }
}

function parseJson(text: string): Json {
  try {
    return parseExact(text)
  } catch {
    throw new CliError('server', 'the response is not JSON; is this a Rouse node?')
  }
}

function reasonOf(error: unknown): string {
  const { name, cause, message } = error as Error & { cause?: { code?: string } }
  return name === 'TimeoutError' ? 'no answer in time' : (cause?.code ?? message)
}
