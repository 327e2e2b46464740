// What a configuration changes in the options of a queue.
import { isDeepStrictEqual } from 'node:util'
import { type Api, type Json, segment } from './api.ts'

export type OptionChanges = Record<string, { from: unknown; to: unknown }>

/** The wanted options that the queue does not have; all of them if it does not exist. */
export async function changesOf(
  api: Api,
  queue: string,
  wanted: Readonly<Record<string, unknown>>,
): Promise<OptionChanges> {
  const found: Json = await api.find(`/api/v1/queues/${segment(queue)}`)
  const before: Readonly<Record<string, unknown>> = found?.options ?? {}
  const different = Object.entries(wanted).filter(
    ([name, to]) => !isDeepStrictEqual(before[name], to),
  )
  return Object.fromEntries(different.map(([name, to]) => [name, { from: before[name], to }]))
}

export function changesLine(queue: string, changes: OptionChanges): string {
  const words = Object.entries(changes).map(
    ([name, { from, to }]) => `${name} ${JSON.stringify(from) ?? '–'} → ${JSON.stringify(to)}`,
  )
  return `${queue}: ${words.join(', ') || 'unchanged'}`
}
