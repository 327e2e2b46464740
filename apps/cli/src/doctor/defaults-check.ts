// The defaults of queue options are in the database, and the node that started last wrote them. They stay when it has gone, so
// new queues may get what no running node was told.
import { type Pool, readServerDefaults } from '@rouse/storage'
import { type Finding, warning } from './finding.ts'

export interface NodeDefaults {
  readonly node: string
  /** Undefined: a node of an earlier release, which does not say. */
  readonly defaults: Readonly<Record<string, unknown>> | undefined
}

/** Where nodes disagree with each other is told by the checks of nodes. */
export async function checkServerDefaults(
  pool: Pool,
  nodes: readonly NodeDefaults[],
): Promise<Finding[]> {
  const known = nodes.filter(({ defaults }) => defaults !== undefined)
  // A schema that cannot be read is a finding of its own.
  const written =
    known.length === 0 ? undefined : await readServerDefaults(pool).catch(() => undefined)
  if (written === undefined) return []
  const names = new Set(
    [written, ...known.map(({ defaults }) => defaults ?? {})].flatMap(Object.keys),
  )
  return [...names].sort().flatMap((name) => {
    const value = textOf(written[name])
    const said = known.map(({ defaults }) => textOf(defaults?.[name]))
    if (said.includes(value)) return []
    const nodesSay = known.map(({ node }, i) => `${node}: ${said[i]}`).join(', ')
    return [
      warning(
        'defaults',
        `new queues get ${isSet(written[name]) ? value : 'the built-in default'} for ${name}, which a node that is gone left in the database (${nodesSay})`,
        'restart a node: the one that starts last writes its ROUSE_DEFAULT_*',
      ),
    ]
  })
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}

function textOf(value: unknown): string {
  return !isSet(value) ? 'not set' : JSON.stringify(value)
}
