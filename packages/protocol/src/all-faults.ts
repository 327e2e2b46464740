// A refused request lists every invalid field, not only the first. Parsing still stops at the first error, so
// that valid requests pay nothing. Only a refused request is parsed again, field by field.
import { type FieldError, fieldErrors, fieldErrorsMax, RouseError } from './errors.ts'

/** Runs all readers, and collects their field errors into one error with the code of `first`. If `first`
 * names no field, it is returned unchanged. */
export function allFaults(first: unknown, reads: Iterable<() => unknown>): unknown {
  if (!(first instanceof RouseError) || first.errors === undefined) return first
  const errors: FieldError[] = []
  for (const read of reads) {
    if (errors.length >= fieldErrorsMax) break
    errors.push(...faultsOf(read))
  }
  return errors.length === 0 ? first : fieldErrors(first.code, errors)
}

/** Reads all fields. Throws one error that lists all invalid fields. */
export function readFields<Readers extends Readonly<Record<string, () => unknown>>>(
  readers: Readers,
): { [Field in keyof Readers]: ReturnType<Readers[Field]> } {
  try {
    const read = Object.entries(readers).map(([field, reader]) => [field, reader()])
    return Object.fromEntries(read) as { [Field in keyof Readers]: ReturnType<Readers[Field]> }
  } catch (error) {
    throw allFaults(error, Object.values(readers))
  }
}

/** Reads all items. Throws one error that lists the invalid fields of all items. */
export function readEach<Item, Result>(
  items: readonly Item[],
  read: (item: Item, index: number) => Result,
): Result[] {
  try {
    return items.map(read)
  } catch (error) {
    throw allFaults(error, rereads(items, read))
  }
}

function* rereads<Item>(
  items: readonly Item[],
  read: (item: Item, index: number) => unknown,
): Generator<() => unknown> {
  for (const [index, item] of items.entries()) yield () => read(item, index)
}

function faultsOf(read: () => unknown): readonly FieldError[] {
  try {
    read()
    return []
  } catch (error) {
    if (error instanceof RouseError) return error.errors ?? []
    throw error
  }
}
