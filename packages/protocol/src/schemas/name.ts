import { Type } from 'typebox'
import { limits } from '../limits.ts'

/** For documents and a first check; the parse functions of names.ts know the whole rule. */
export function Name(description?: string) {
  return Type.String({
    minLength: 1,
    maxLength: limits.nameBytesMax,
    ...(description === undefined ? {} : { description }),
  })
}

export const Time = Type.String({ format: 'date-time' })

/** A value that may be null in an answer. */
export function Nullable<S extends Parameters<typeof Type.Array>[0]>(schema: S) {
  return Type.Union([schema, Type.Null()])
}

/** Of a list in pages: what `cursor` of the next request says; null after the last page. */
export const Cursor = () => Nullable(Type.String({ description: 'For the next page; null: none' }))
