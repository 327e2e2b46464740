// The words that may come next on a command line. Names of queues, groups and schedules come from the cluster.
import type { Argument, Command, Option } from 'commander'
import { type Api, type Json, query, segment } from '../api.ts'

const askMs = 1_500
const namesMax = 1_000

/** `words` are those behind `rouse`; the last one is incomplete, and may be empty. */
export async function candidates(
  program: Command,
  words: readonly string[],
  api: Api,
): Promise<string[]> {
  const typed = words.at(-1) ?? ''
  const place = findPlace(program, words.slice(0, -1))
  const all = await wordsAt(place, typed, api)
  return all.filter((word) => word.startsWith(typed) && !/\p{Cc}/u.test(word))
}

interface Place {
  readonly command: Command
  /** The arguments before the word, without options. */
  readonly given: readonly string[]
  /** The option whose value the word is. */
  readonly option: Option | undefined
  readonly areOptionsOver: boolean
}

function findPlace(program: Command, words: readonly string[]): Place {
  let command = program
  let given: string[] = []
  let option: Option | undefined
  let areOptionsOver = false
  for (const word of words) {
    if (option !== undefined) option = undefined
    else if (word === '--') areOptionsOver = true
    else if (!areOptionsOver && word.startsWith('-')) {
      const known = optionsOf(command).find(({ short, long }) => word === short || word === long)
      option = known?.required === true ? known : undefined
    } else {
      const next = given.length === 0 ? childOf(command, word) : undefined
      if (next === undefined) given.push(word)
      else {
        command = next
        given = []
      }
    }
  }
  return { command, given, option, areOptionsOver }
}

function childOf(command: Command, name: string): Command | undefined {
  return command.commands.find((one) => one.name() === name || one.aliases().includes(name))
}

/** Those of the command and of its parents. */
function optionsOf(command: Command): readonly Option[] {
  const parents = command.parent === null ? [] : optionsOf(command.parent)
  return [...command.options, ...parents].filter(({ hidden }) => !hidden)
}

async function wordsAt(place: Place, typed: string, api: Api): Promise<string[]> {
  const { command, given, option, areOptionsOver } = place
  if (option !== undefined) return valuesOf(option, placeholderOf(option.flags), given, api)
  if (typed.startsWith('-') && !areOptionsOver) {
    return [...optionsOf(command).flatMap(({ long }) => long ?? []), '--help']
  }
  const verbs = given.length > 0 ? [] : visible(command)
  const taking = argumentsOf(command)
  const argument =
    taking[given.length] ?? (taking.at(-1)?.variadic === true ? taking.at(-1) : undefined)
  if (argument === undefined) return verbs
  return [...verbs, ...(await valuesOf(argument, argument.name(), given, api))]
}

function visible(command: Command): string[] {
  const all = command.createHelp().visibleCommands(command)
  return all.map((one) => one.name())
}

/** `rouse messages orders` is `rouse messages list orders`. */
function argumentsOf(command: Command): readonly Argument[] {
  if (command.registeredArguments.length > 0) return command.registeredArguments
  return childOf(command, 'list')?.registeredArguments ?? []
}

/** `queue` of `-q, --queue <queue>`. */
function placeholderOf(flags: string): string {
  return /<([^>]+)>/.exec(flags)?.[1] ?? ''
}

async function valuesOf(
  { argChoices }: { readonly argChoices?: readonly string[] | undefined },
  what: string,
  given: readonly string[],
  api: Api,
): Promise<string[]> {
  if (argChoices !== undefined) return [...argChoices]
  if (what === 'shell') return ['bash', 'zsh', 'fish']
  try {
    return await namesOf(what, given, api)
  } catch {
    // A cluster that does not answer has no names; an error would be printed into the command line.
    return []
  }
}

async function namesOf(what: string, given: readonly string[], api: Api): Promise<string[]> {
  const quickly = { timeoutMs: askMs }
  switch (what) {
    case 'queue': {
      const { body } = await api.get(`/api/v1/queues${query({ limit: namesMax })}`, quickly)
      return body.queues.map(({ queue }: Json) => queue)
    }
    case 'group': {
      const [queue] = given
      const path =
        queue === undefined ? '/api/v1/groups' : `/api/v1/resources/queues/${segment(queue)}`
      const { body } = await api.get(path, quickly)
      const names: string[] = body.groups.map(({ consumerGroup }: Json) => consumerGroup)
      return [...new Set(names.map((name) => (name === '__QUEUE_MODE__' ? 'default' : name)))]
    }
    case 'schedule': {
      const { body } = await api.get(`/api/v1/schedules${query({ limit: namesMax })}`, quickly)
      return body.schedules.map(({ name }: Json) => name)
    }
    default:
      return []
  }
}
