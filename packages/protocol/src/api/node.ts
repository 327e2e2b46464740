// The routes that describe a node and its cluster.
import { EventsQuerySchema } from '../schemas/observe/events.ts'
import { SeriesQuerySchema } from '../schemas/observe/series.ts'
import { StatsQuerySchema } from '../schemas/observe/stats.ts'
import { type Endpoint, needs } from './endpoint.ts'

export const nodeEndpoints: readonly Endpoint[] = [
  { method: 'GET', path: '/', summary: 'What this is, and where to look next', needs: 'nothing' },
  { method: 'GET', path: '/openapi.json', summary: 'This API as OpenAPI 3.1', needs: 'nothing' },
  { method: 'GET', path: '/docs/api', summary: 'This API as a page for people', needs: 'nothing' },
  { method: 'GET', path: '/live', summary: 'Whether the process runs', needs: 'nothing' },
  {
    method: 'GET',
    path: '/ready',
    summary: 'Whether the node can accept messages',
    needs: 'nothing',
  },
  { method: 'GET', path: '/health', summary: 'The same as /ready', needs: 'nothing' },
  {
    method: 'GET',
    path: '/docs',
    summary: 'The documentation: redirects to its first page',
    needs: 'nothing',
  },
  { method: 'GET', path: '/docs/:page', summary: 'A page of the documentation', needs: 'nothing' },
  {
    method: 'GET',
    path: '/docs/:folder/:page',
    summary: 'A page in a folder of the documentation',
    needs: 'nothing',
  },
  {
    method: 'GET',
    path: '/dashboard',
    summary: 'The dashboard: redirects to its page',
    needs: 'nothing',
  },
  {
    method: 'GET',
    path: '/dashboard/',
    summary: 'The dashboard',
    needs: 'nothing',
    // An OIDC issuer sends users back here with a code.
    ignoresQuery: true,
  },
  { method: 'GET', path: '/dashboard/:file', summary: 'A file of the dashboard', needs: 'nothing' },
  {
    method: 'GET',
    path: '/stats',
    summary: 'Counters of a node, or of the cluster',
    needs: needs('observe', 'every'),
    query: StatsQuerySchema,
  },
  {
    method: 'GET',
    path: '/metrics',
    summary: 'Metrics of a node as Prometheus text',
    needs: needs('observe', 'every'),
  },
  {
    method: 'GET',
    path: '/api/v1/series',
    summary: 'What queues did by second in the last hour, or by minute in the last day',
    needs: needs('observe', 'query'),
    query: SeriesQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/events',
    summary: 'What happens in the cluster, as server-sent events',
    needs: needs('observe', 'any'),
    query: EventsQuerySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/nodes',
    summary: 'Lists the nodes of the cluster',
    needs: needs('observe', 'every'),
  },
]
