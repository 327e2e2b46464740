/** What a grant allows. `admin` is for the whole cluster, the others for queues. */
export const verbs = ['push', 'pop', 'peek', 'manage', 'observe', 'admin'] as const
export type Verb = (typeof verbs)[number]

/**
 * The queues that a request is about, and so those that the grant must cover:
 *
 *   every        every queue, or none in particular
 *   path         the queue in the path
 *   query        the queue in the query; every queue, if it is not given
 *   body         the queue in the body; every queue, if it is not given
 *   items        the queue of every item of the body
 *   options      the queue that an option of the body names: messages are moved to it
 *   operations   of a transaction: `push` for what it pushes, `pop` for what it ends
 *   any          at least one queue: the receipt in the request is the capability for its own
 *   found        at least one queue: the route finds the queue, and then checks the grant for it
 */
export type Target =
  | 'every'
  | 'path'
  | 'query'
  | 'body'
  | 'items'
  | 'options'
  | 'operations'
  | 'any'
  | 'found'

/** The grants that a request needs, all of them. `nothing`: the route holds no data and needs no credential. */
export type Needs = 'nothing' | readonly Need[]

export interface Need {
  readonly verb: Verb
  readonly target: Target
  /** A weaker grant that is enough for a response without payloads, headers, results and error texts. */
  readonly orRedacted?: Verb
}

/** One route of the HTTP API. Its schemas validate requests, and describe them in the documentation. */
export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With parameters as `:name`. */
  readonly path: string
  /** One line for the documentation. */
  readonly summary: string
  /** A route without it stops the server. */
  readonly needs: Needs
  /** Only the names are checked by schema: in a query string all values are text, and parsers read them. */
  readonly query?: { readonly properties: object }
  /** A page for people, which ignores parameters that others have added to its address. */
  readonly ignoresQuery?: true
  /** Absent: the request has no body, or an empty object. */
  readonly body?: RequestSchema
  /** The body in the documentation, if `body` has only the names, because parsers check the values. */
  readonly shownBody?: RequestSchema
}

/** A JSON Schema. Objects with `properties` take no other fields, unless they say so. */
export type RequestSchema = object

export function needs(verb: Verb, target: Target): Needs {
  return [{ verb, target }]
}

/** `peek`, or `observe` for a response without content. */
export function needsToRead(target: Target): Needs {
  return [{ verb: 'peek', target, orRedacted: 'observe' }]
}
