import type { FastifyInstance } from 'fastify'
import { limitAdminCalls, ReadSlots } from '../http/admin-limits.ts'
import type { BrokerContext } from '../worker/context.ts'
import { auditRoute } from './access/audit.ts'
import { keyRoutes } from './access/keys.ts'
import { sessionRoutes } from './access/session.ts'
import { ackRoutes } from './ack.ts'
import { apiDocRoutes } from './api-docs.ts'
import { consumerGroupRoutes } from './consumer-groups.ts'
import { deadLetterRoutes } from './dead-letters.ts'
import { existingClientRoutes } from './existing-clients.ts'
import { healthRoutes } from './health.ts'
import { leaseRoutes } from './leases.ts'
import { messageStateRoutes } from './message/state.ts'
import { messageByIdRoutes } from './message-by-id.ts'
import { messageRoutes } from './messages.ts'
import { eventsRoute } from './observe/events.ts'
import { messageWhyRoute } from './observe/message-why.ts'
import { metricsRoute } from './observe/metrics.ts'
import { seriesRoute } from './observe/series.ts'
import { statsRoutes } from './observe/stats.ts'
import { dashboardRoutes } from './pages/dashboard.ts'
import { siteRoutes } from './pages/site.ts'
import { popRoutes } from './pop.ts'
import { pushRoute } from './push.ts'
import { queueRoutes } from './queues.ts'
import { deadLetterResourceRoutes } from './resources/dead-letters.ts'
import { groupRoutes } from './resources/groups.ts'
import { queueResourceRoutes } from './resources/queues.ts'
import { scheduleRoutes } from './schedules.ts'
import { traceRoutes } from './traces.ts'
import { transactionRoute } from './transaction.ts'
import { whyRoute } from './why.ts'

/** These routes use the sidecar, a bounded query, or no database connection at all. */
const unlimitedRoutes = [
  pushRoute,
  popRoutes,
  ackRoutes,
  transactionRoute,
  leaseRoutes,
  healthRoutes,
  statsRoutes,
  metricsRoute,
  seriesRoute,
  eventsRoute,
  apiDocRoutes,
  siteRoutes,
  dashboardRoutes,
  sessionRoutes,
]

/** These routes query the database directly. */
const adminRoutes = [
  queueRoutes,
  queueResourceRoutes,
  consumerGroupRoutes,
  groupRoutes,
  existingClientRoutes,
  whyRoute,
  messageRoutes,
  messageByIdRoutes,
  messageWhyRoute,
  deadLetterRoutes,
  deadLetterResourceRoutes,
  traceRoutes,
  scheduleRoutes,
  keyRoutes,
  auditRoute,
]

export function registerRoutes(app: FastifyInstance, context: BrokerContext): void {
  for (const register of unlimitedRoutes) register(app, context)
  const reads = new ReadSlots(context.config.writeTimeoutMs)
  messageStateRoutes(app, { ...context, reads })
  // In a plugin of their own, so that the limits apply only to these routes.
  void app.register(async (admin) => {
    limitAdminCalls(admin, {
      timeoutMs: context.config.writeTimeoutMs,
      reads,
      onOutcomeUnknown: () => context.coordinator.notifyOutcomeUnknown(),
    })
    for (const register of adminRoutes) register(admin, context)
  })
}
