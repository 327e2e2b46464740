// Grants: what a principal may do. One text each, `verb:pattern`, for `pop` optionally with `@group`. A pattern is
// a queue's name, or a prefix that ends in `*`. There are no rules that deny and no regular expressions.
import {
  fieldError,
  type keyPresets,
  parseConsumerGroup,
  parseQueueName,
  type Verb,
  verbs,
} from '@rouse/protocol'

export interface Grant {
  readonly verb: Verb
  /** Empty for `admin`, which is for the whole cluster. */
  readonly pattern: string
  /** Undefined: every consumer group. */
  readonly group?: string | undefined
}

export const grantsMax = 100

/** Throws an error that names the field. */
export function parseGrant(text: unknown, field: string): Grant {
  const form = /^([a-z]+)(?::(.*))?$/s
  const [, verb = '', rest] = (typeof text === 'string' ? form.exec(text) : null) ?? []
  const known = verbs.find((one) => one === verb)
  if (known === undefined) {
    throw fieldError('invalid_request', field, `must begin with one of ${verbs.join(', ')}`)
  }
  if (known === 'admin') {
    if (rest === undefined) return { verb: known, pattern: '' }
    throw fieldError('invalid_request', field, 'must be "admin" alone: it is for the whole cluster')
  }
  if (rest === undefined) {
    throw fieldError(
      'invalid_request',
      field,
      `must name queues, such as ${known}:* or ${known}:orders`,
    )
  }
  // Queue names may contain `@`, so the last one counts; `@*` stands for every group.
  const at = known === 'pop' ? rest.lastIndexOf('@') : -1
  if (at === -1) return { verb: known, pattern: parseQueueName(rest, field) }
  const pattern = parseQueueName(rest.slice(0, at), field)
  const group = rest.slice(at + 1)
  return group === '*'
    ? { verb: known, pattern }
    : { verb: known, pattern, group: parseConsumerGroup(group, field) }
}

/** The grants of one verb for some queues, arranged for quick checks. */
class VerbGrants {
  readonly names = new Set<string>()
  readonly prefixes: string[] = []
  /** Grants for one consumer group. */
  readonly grouped: Grant[] = []

  covers(queue: string, group: string | undefined): boolean {
    if (this.names.has(queue)) return true
    if (this.prefixes.some((prefix) => queue.startsWith(prefix))) return true
    return (
      group !== undefined &&
      this.grouped.some((one) => one.group === group && matches(one.pattern, queue))
    )
  }
}

/** Whether a pattern matches a queue's name. */
export function matches(pattern: string, queue: string): boolean {
  return pattern.endsWith('*') ? queue.startsWith(pattern.slice(0, -1)) : queue === pattern
}

export interface VisibleQueues {
  readonly names: readonly string[]
  readonly prefixes: readonly string[]
}

export class Grants {
  readonly #byVerb = new Map<Verb, VerbGrants>()
  readonly #list: readonly Grant[]
  /** The verbs that are allowed on every queue, for every group. A set, because every request reads it. */
  readonly everywhere: ReadonlySet<Verb>

  constructor(grants: readonly Grant[]) {
    this.#list = grants
    this.everywhere = new Set(grants.filter(isForEverything).map(({ verb }) => verb))
    for (const grant of grants) this.#add(grant)
  }

  /** The grants as text, as `parseGrant` reads them. */
  get texts(): string[] {
    return this.#list.map(({ verb, pattern, group }) => {
      if (verb === 'admin') return verb
      // Otherwise the text after the last `@` of the pattern would be read as a group.
      const everyGroup = verb === 'pop' && pattern.includes('@') ? '@*' : ''
      return `${verb}:${pattern}${group === undefined ? everyGroup : `@${group}`}`
    })
  }

  /** Whether the verb is allowed on this queue. `group` is the consumer group of a pop. */
  covers(verb: Verb, queue: string, group?: string): boolean {
    return this.everywhere.has(verb) || this.#byVerb.get(verb)?.covers(queue, group) === true
  }

  /** Whether the verb is allowed on this queue, for at least one consumer group. */
  coversSome(verb: Verb, queue: string): boolean {
    if (this.covers(verb, queue)) return true
    const grouped = this.#byVerb.get(verb)?.grouped ?? []
    return grouped.some(({ pattern }) => matches(pattern, queue))
  }

  /** Whether the verb is allowed on at least one queue. */
  coversAny(verb: Verb): boolean {
    return this.#byVerb.has(verb)
  }

  /** The queues that the verb is allowed on; undefined if on every queue. */
  visible(verb: Verb): VisibleQueues | undefined {
    if (this.everywhere.has(verb)) return undefined
    const own = this.#byVerb.get(verb)
    return { names: [...(own?.names ?? [])], prefixes: own?.prefixes ?? [] }
  }

  #add(grant: Grant): void {
    const { verb, pattern, group } = grant
    const own = this.#byVerb.get(verb) ?? new VerbGrants()
    this.#byVerb.set(verb, own)
    if (isForEverything(grant)) return
    if (group !== undefined) own.grouped.push(grant)
    else if (pattern.endsWith('*')) own.prefixes.push(pattern.slice(0, -1))
    else own.names.add(pattern)
  }
}

function isForEverything({ verb, pattern, group }: Grant): boolean {
  return group === undefined && (verb === 'admin' || pattern === '*')
}

export type Preset = (typeof keyPresets)[number]

/** The grants of a preset. `pattern` limits all of them but those of `admin`. */
export function presetGrants(preset: Preset, pattern = '*'): string[] {
  const on = (...allowed: readonly Verb[]) => allowed.map((verb) => `${verb}:${pattern}`)
  switch (preset) {
    case 'producer':
      return on('push')
    case 'worker':
      return on('pop', 'push')
    case 'viewer':
      return on('observe')
    case 'operator':
      return on('observe', 'peek', 'manage', 'push')
    case 'admin':
      return verbs.map((verb) => (verb === 'admin' ? verb : `${verb}:*`))
  }
}
