import type { GroupFigures } from '../api/answers.ts'
import { ask, segment } from '../api/client.ts'
import type { Confirmation } from '../parts/confirm.tsx'
import { count, plural } from '../parts/format.ts'

export function deletionOfGroup(queue: string, group: string): Confirmation {
  const path = `/api/v1/groups/${segment(group)}/queues/${segment(queue)}`
  return {
    title: `Delete the group of queue ${queue}`,
    action: 'Delete group',
    name: group,
    call: { path, method: 'DELETE' },
    dryRun: async () => {
      const { ready, leased, retrying, dead } = await ask<GroupFigures>(path)
      return (
        `The group loses its position: ${plural(ready, 'message')} not yet delivered to it, ${count(leased)} running, ` +
        `${count(retrying)} retrying, ${plural(dead, 'dead letter')}. Other groups are not affected.`
      )
    },
    run: () => ask(path, { method: 'DELETE' }),
  }
}

export function seekOfGroup(queue: string, group: string): Confirmation {
  const path = `/api/v1/groups/${segment(group)}/queues/${segment(queue)}/seek`
  const body = { toEnd: true }
  return {
    title: `Skip everything that waits for the group`,
    action: 'Seek to the end',
    name: group,
    call: { path, method: 'POST', body },
    dryRun: async () => {
      const { ready } = await ask<GroupFigures>(
        `/api/v1/groups/${segment(group)}/queues/${segment(queue)}`,
      )
      return `${plural(ready, 'message')} will not be delivered to this group.`
    },
    run: () => ask(path, { method: 'POST', body }),
  }
}
