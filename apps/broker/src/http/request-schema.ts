/** Drops the list length limits from a protocol schema: they are configurable, and the routes check them. */
export function bodySchema(schema: object): object {
  return JSON.parse(
    JSON.stringify(schema, (key, value: unknown) => (key === 'maxItems' ? undefined : value)),
  ) as object
}
