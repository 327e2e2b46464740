// Each node writes its defaults of queue options to the database when it starts. The values stay there after
// the node has stopped, so new queues may get defaults that no running node has.
import { type Pool, readServerDefaults } from '@rouse/storage'
import { type Finding, warning } from './finding.ts'

export interface NodeDefaults {
  readonly node: string
  /** Undefined for a node of an earlier release, which does not report its defaults. */
  readonly defaults: Readonly<Record<string, unknown>> | undefined
}

/** Reports defaults in the database that no node has. The node checks report differences between nodes. */
export async function checkServerDefaults(
  pool: Pool,
  nodes: readonly NodeDefaults[],
): Promise<Finding[]> {
  const known = nodes.filter(({ defaults }) => defaults !== undefined)
  // Another check reports a schema that cannot be read.
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
        `new queues get ${isSet(written[name]) ? value : 'the built-in default'} for ${name}, but no running node has this default (${nodesSay})`,
        'restart a node: at its start it writes its ROUSE_DEFAULT_* settings to the database',
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
