// Notes about names that may be misspelt. A pop creates its consumer group if that does not exist, and waits
// if its queue does not exist, so without a note a wrong name would go unnoticed.
import { type Api, type Json, segment } from './api.ts'
import { CliError } from './cli-error.ts'
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

/**
 * The consumer group whose states a list shows: the given one, else the unnamed one. If only one other group has
 * asked for messages, its states are the ones that matter.
 */
export async function groupShown(
  queue: string,
  given: string | undefined,
  api: Api,
  output: Output,
): Promise<string | undefined> {
  if (given !== undefined) return given
  const names = (await groupsOf(queue, api)) ?? []
  const [only] = names
  if (only === undefined || names.some((name) => unnamed.includes(name))) return undefined
  if (names.length === 1) {
    output.note(`the states are those in consumer group "${only}"`)
    return only
  }
  output.note(`the unnamed consumer group has asked for nothing; --group: ${names.join(', ')}`)
  return undefined
}

/** A queue that does not exist is probably misspelt. To pop from it is no error: it may be created later. */
export async function noteMissingQueue(queue: string, api: Api, output: Output): Promise<void> {
  const names = await ifAllowed(async () => {
    const found = await api.find(`/api/v1/queues/${segment(queue)}`)
    return found === undefined ? await queueNames(api) : undefined
  })
  if (names === undefined) return
  const meant = await nearest(queue, names)
  const suggestion = meant === undefined ? '' : `; did you mean "${meant}"?`
  output.note(`there is no queue "${queue}" yet${suggestion}`)
}

/** Undefined if the queue does not exist, or the API key must not look. */
async function groupsOf(queue: string, api: Api): Promise<string[] | undefined> {
  const found = await ifAllowed(() => api.find(`/api/v1/resources/queues/${segment(queue)}`))
  return found?.groups.map(({ consumerGroup }: Json) => consumerGroup as string)
}

const queuesCompared = 1_000

async function queueNames(api: Api): Promise<string[]> {
  const { body } = await api.get(`/api/v1/queues?limit=${queuesCompared}`)
  return body.queues.map(({ queue }: Json) => queue as string)
}

async function ifAllowed<Result>(read: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof CliError && error.status === 403) return undefined
    throw error
  }
}

/** The name with the fewest differences from the given one, if there are few. */
async function nearest(given: string, names: readonly string[]): Promise<string | undefined> {
  // Loaded here, because most calls of the program need no suggestion.
  const { editDistance } = await import('@rouse/protocol')
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(given.length / 4)) + 1
  for (const name of names) {
    const distance = editDistance(given.toLowerCase(), name.toLowerCase())
    if (distance < bestDistance) {
      best = name
      bestDistance = distance
    }
  }
  return best
}
