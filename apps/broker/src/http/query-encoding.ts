import { type FieldError, fieldErrors, type RouseError } from '@rouse/protocol'

/**
 * Fastify takes a query value that it cannot decode as it stands: `%ff` would be a group of that name. So the encoding is
 * looked at before anything is read; a URL without `%` costs one search. Not done in a `querystringParser`: the router
 * calls that where nobody catches what it throws.
 */
export function encodingFault(url: string): RouseError | undefined {
  if (!url.includes('%')) return undefined
  // To the router a query begins at `#`, too.
  const start = url.search(/[?#]/)
  if (start === -1) return undefined
  const query = url.slice(start + 1)
  // Most are good: one look at the whole, and only a bad one is taken apart.
  if (isDecodable(query)) return undefined
  return fieldErrors('invalid_request', query.split('&').flatMap(faultOf))
}

function faultOf(parameter: string): FieldError[] {
  if (isDecodable(parameter)) return []
  const [name = ''] = parameter.split('=', 1)
  const field = isDecodable(name) ? decodeURIComponent(name) : name
  return [{ field, message: 'must be percent-encoded UTF-8' }]
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
