import { consumerEndpoints } from './consumers.ts'
import type { Endpoint } from './endpoint.ts'
import { groupEndpoints } from './groups.ts'
import { keyEndpoints } from './keys.ts'
import { messageEndpoints } from './messages.ts'
import { nodeEndpoints } from './node.ts'
import { queueEndpoints } from './queues.ts'

/** Every route of a node. A route that is not in this list cannot be registered. */
export const endpoints: readonly Endpoint[] = [
  ...consumerEndpoints,
  ...messageEndpoints,
  ...queueEndpoints,
  ...groupEndpoints,
  ...nodeEndpoints,
  ...keyEndpoints,
]
