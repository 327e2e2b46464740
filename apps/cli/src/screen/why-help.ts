// The command that helps, for each reason why nothing is delivered.
import type { Json } from '../api.ts'
import { shellLine } from '../shell.ts'

export interface Help {
  readonly label: string
  readonly command: string
}

const helpsMax = 4

/** Reasons that are no fault: what helps against them is shown only if nothing else is wrong. */
const harmless = ['empty', 'in_progress', 'ready', 'not_due']

/** In the order of the reasons, each command once. */
export function helpFor(queue: string, reasons: readonly Json[]): Help[] {
  const found = new Map<string, Help>()
  const faults = reasons.filter(({ code }) => !harmless.includes(code))
  for (const reason of faults.length > 0 ? faults : reasons) {
    for (const [label, ...words] of wordsFor(queue, reason)) {
      const command = shellLine('rouse', ...words)
      if (!found.has(command)) found.set(command, { label, command })
    }
  }
  return [...found.values()].slice(0, helpsMax)
}

type Words = readonly [label: string, ...words: string[]]

function wordsFor(queue: string, reason: Json): readonly Words[] {
  const { code, consumerGroup } = reason
  const group: string = consumerGroup === '__QUEUE_MODE__' ? 'default' : consumerGroup
  const ofGroup = group === undefined || group === 'default' ? [] : ['-g', group]
  const list = (state: string): string[] => [
    'messages',
    'list',
    queue,
    '--state',
    state,
    ...ofGroup,
  ]
  const set = (option: string, value: unknown): string[] => [
    'configure',
    queue,
    `${option}=${JSON.stringify(value)}`,
  ]
  const twice = ({ limit, perMs }: Json) => ({ limit: limit * 2, perMs })
  switch (code) {
    case 'database_down':
      return [['Find the fault', 'doctor']]
    case 'paused':
      return [['Resume delivery', 'resume', queue]]
    case 'size_limit':
      return [['See which group is behind', 'groups', 'list', queue]]
    case 'in_flight_limit':
      return [
        ['See who holds them', ...list('leased')],
        ['Raise the limit', ...set('maxInFlight', reason.maxInFlight * 2)],
      ]
    case 'partition_in_flight_limit':
      return [['Raise the limit', ...set('maxInFlightPerPartition', reason.limit * 2)]]
    case 'rate_limit':
      return [['Raise the rate', ...set('rate', twice(reason))]]
    case 'partition_rate_limit':
      return [['Raise the rate', ...set('partitionRate', twice(reason))]]
    case 'held_lane':
      return [
        ...(reason.messageId === null
          ? []
          : [['Try it again now', 'messages', 'run-now', reason.messageId] as const]),
        ['Let the others overtake it', 'configure', queue, 'onFailure=skip'],
      ]
    case 'gathering':
      return [['Deliver without gathering', ...set('windowBuffer', 0)]]
    case 'all_leased':
    case 'in_progress':
      return [['See who holds them', ...list('leased')]]
    case 'retry_later':
      return [['See what failed', ...list('retrying')]]
    case 'no_consumers':
      return [['Take one message', 'pop', queue, ...ofGroup]]
    case 'ready':
      return [['Watch it', 'top']]
    case 'not_due':
      return [['See what is scheduled', ...list('scheduled')]]
    case 'holds_retention':
    case 'idle_group':
      return [['Delete the group, if it is not needed', 'groups', 'rm', queue, group]]
    case 'unique_key':
      return [['See the message', 'messages', 'get', reason.messageId]]
    case 'dead_letters':
      return [['See why they died', 'dlq', 'errors', queue]]
    case 'database_copy':
      return [['Make it a cluster of its own', 'adopt-copy', '--dry-run']]
    case 'empty':
      return [['Push a message', 'push', queue, '{"hello": "world"}']]
    default:
      return []
  }
}
