import { type Original, type Pool, readCopyState } from '@rouse/storage'
import { type Finding, fine, warning } from './finding.ts'

/** Reports a restored copy, and a role that cannot recognize every copy. Nothing before the first migration. */
export async function checkCopy(pool: Pool): Promise<Finding[]> {
  const state = await readCopyState(pool).catch(() => undefined)
  if (state === undefined) return []
  if (state.copyOf !== undefined) return [copyFound(state.copyOf)]
  if (state.systemIdentifier !== null) return [fine('copy', 'the database is not a restored copy')]
  return [
    warning(
      'copy',
      'this role may not read the system identifier: a copy of the same name on another server would not be recognized',
      'grant execute on function pg_control_system() to the role of the nodes',
    ),
  ]
}

export function copyFound({ database, systemIdentifier }: Original): Finding {
  const server = systemIdentifier === null ? '' : ` on server ${systemIdentifier}`
  return warning(
    'copy',
    `this database is a copy of database "${database}"${server}: schedules and redrives do not run`,
    'to make this copy a cluster of its own, run rouse adopt-copy; otherwise restore it under the name and on the server of the original',
  )
}
