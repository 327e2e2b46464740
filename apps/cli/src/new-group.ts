// A pop with the name of a consumer group that does not exist creates it. A misspelt name would do so unnoticed.
import { type Api, type Json, segment } from './api.ts'
import { CliError } from './cli-error.ts'
import { nearest } from './nearest.ts'
import type { Output } from './output.ts'

const unnamed = ['default', '__QUEUE_MODE__']

export async function noteNewGroup(
  queue: string,
  group: string,
  from: string,
  api: Api,
  output: Output,
): Promise<void> {
  const names = await groupsOf(queue, api)
  if (names === undefined || names.includes(group) || unnamed.includes(group)) return
  const meant = await nearest(
    group,
    names.filter((name) => !unnamed.includes(name)),
  )
  const begin =
    from === 'new'
      ? 'it begins with messages that are pushed from now on; --from all: with all that are kept'
      : `it begins with ${from === 'all' ? 'all messages that are kept' : `the messages since ${from}`}`
  const suggestion = meant === undefined ? '' : `; did you mean "${meant}"?`
  output.note(`queue "${queue}" has no consumer group "${group}" yet: ${begin}${suggestion}`)
}

/** Undefined if the queue does not exist, or the API key must not look. */
async function groupsOf(queue: string, api: Api): Promise<string[] | undefined> {
  try {
    const { body } = await api.get(`/api/v1/resources/queues/${segment(queue)}`)
    return body.groups.map(({ consumerGroup }: Json) => consumerGroup as string)
  } catch (error) {
    if (error instanceof CliError && (error.status === 403 || error.status === 404))
      return undefined
    throw error
  }
}
