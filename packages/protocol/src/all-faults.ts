// A request is refused with every field that is wrong, not with the first. Reading stops at the first all the same: what
// is good must not pay for it. Only a request that was refused is read again, field by field.
import { type FieldError, fieldErrors, fieldErrorsMax, RouseError } from './errors.ts'

/** What all of these refuse, in one error with the code of the first. An error that names no field stays as it is. */
export function allFaults(first: unknown, reads: Iterable<() => unknown>): unknown {
  if (!(first instanceof RouseError) || first.errors === undefined) return first
  const errors: FieldError[] = []
  for (const read of reads) {
    if (errors.length >= fieldErrorsMax) break
    errors.push(...faultsOf(read))
  }
  return errors.length === 0 ? first : fieldErrors(first.code, errors)
}

/** Reads all of them, or tells of all that were refused. */
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

/** The same for a list. */
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
