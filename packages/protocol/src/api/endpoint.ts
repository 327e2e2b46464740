/** One route of the HTTP API. Its schemas validate requests, and describe them in the documentation. */
export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With parameters as `:name`. */
  readonly path: string
  /** One line for the documentation. */
  readonly summary: string
  /** Only the names are checked by schema: in a query string all values are text, and parsers read them. */
  readonly query?: { readonly properties: object }
  /** Absent: the request has no body, or an empty object. */
  readonly body?: RequestSchema
  /** The body in the documentation, if `body` has only the names, because parsers check the values. */
  readonly shownBody?: RequestSchema
}

/** A JSON Schema. Objects with `properties` take no other fields, unless they say so. */
export type RequestSchema = object
