// Answers that carry payloads. They are JSON text in the database and go out as they are, without being parsed: a
// number of thirty digits comes back with all of them.

/** An object as JSON, some of its fields given as JSON text. */
export function jsonWith(
  fields: Readonly<Record<string, unknown>>,
  stored: Readonly<Record<string, string | null>>,
): string {
  const texts = Object.entries(stored).map(([name, text]) => `"${name}":${text ?? 'null'}`)
  const head = JSON.stringify(fields).slice(0, -1)
  return `${head}${head === '{' ? '' : ','}${texts.join(',')}}`
}

/** `{"name":[…],…}`, the list of objects that are JSON text already. */
export function jsonList(
  name: string,
  items: readonly string[],
  fields: Readonly<Record<string, unknown>> = {},
): string {
  return jsonWith(fields, { [name]: `[${items.join(',')}]` })
}
