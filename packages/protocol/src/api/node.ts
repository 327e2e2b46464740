// The routes that describe a node and its cluster.
import { StatsQuerySchema } from '../schemas/stats.ts'
import type { Endpoint } from './endpoint.ts'

export const nodeEndpoints: readonly Endpoint[] = [
  { method: 'GET', path: '/', summary: 'What this is, and where to look next' },
  { method: 'GET', path: '/openapi.json', summary: 'This API as OpenAPI 3.1' },
  { method: 'GET', path: '/docs/api', summary: 'This API as a page for people' },
  { method: 'GET', path: '/live', summary: 'Whether the process runs' },
  { method: 'GET', path: '/ready', summary: 'Whether the node can accept messages' },
  { method: 'GET', path: '/health', summary: 'The same as /ready' },
  {
    method: 'GET',
    path: '/stats',
    summary: 'Counters of a node, or of the cluster',
    query: StatsQuerySchema,
  },
  { method: 'GET', path: '/api/v1/nodes', summary: 'Lists the nodes of the cluster' },
]
