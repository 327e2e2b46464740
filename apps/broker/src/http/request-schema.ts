/**
 * A schema of the protocol as a validator wants it: without the counts of list items, which are configurable and
 * therefore checked by the routes.
 */
export function bodySchema(schema: object): object {
  return JSON.parse(
    JSON.stringify(schema, (key, value: unknown) => (key === 'maxItems' ? undefined : value)),
  ) as object
}
