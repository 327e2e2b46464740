// Credentials in a URL, `http://user:password@host`: sent as a header, never printed.
import { CliError } from './cli-error.ts'

/** The `Authorization` header for the credentials of a URL, if it has any. */
export function authorizationOf({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined
  let text: string
  try {
    text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  } catch {
    throw new CliError('usage', 'the credentials of the URL are not percent-encoded correctly')
  }
  return `Basic ${Buffer.from(text).toString('base64')}`
}

/**
 * The URL as it may be printed. It need not be valid: a mistyped URL has credentials, too, and they may contain
 * any character.
 */
export function withoutCredentials(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1')
}
