import { limits } from '../limits.ts'
import { Type } from '../typebox.ts'

/** For documentation and a first check; the parsers in names.ts enforce the full rule. */
export function Name(description?: string) {
  return Type.String({
    minLength: 1,
    maxLength: limits.nameBytesMax,
    ...(description === undefined ? {} : { description }),
  })
}

/** Existing clients send an empty name for an absent one. */
export function NameOrEmpty() {
  return Type.String({ maxLength: limits.nameBytesMax, description: 'Empty means absent' })
}

export const Time = Type.String({ format: 'date-time' })

/** A value that may be null in a response. */
export function Nullable<S extends Parameters<typeof Type.Array>[0]>(schema: S) {
  return Type.Union([schema, Type.Null()])
}

/** An optional field that existing clients send and that has no effect. */
export const Ignored = () =>
  Type.Optional(Type.Unknown({ description: 'Accepted from existing clients, and ignored' }))

const Limit = () => Type.Optional(Type.Integer({ minimum: 1, maximum: limits.pageSizeMax }))

/** The query of a list in pages. */
export const PageQuerySchema = Type.Object({
  limit: Limit(),
  cursor: Type.Optional(Type.String({ description: 'From the last response' })),
})

/** A page by number of entries to skip, as existing clients ask for it. */
export const offsetFields = { limit: Limit(), offset: Type.Optional(Type.Integer({ minimum: 0 })) }

/** A span of time, as existing clients ask for it. */
export const spanFields = {
  from: Type.Optional(Type.String({ description: 'A time with a time zone' })),
  to: Type.Optional(Type.String({ description: 'A time with a time zone' })),
}

/** For paged lists: the `cursor` of the next request; null after the last page. */
export const Cursor = () =>
  Nullable(Type.String({ description: 'For the next page; null if there is none' }))
