import type { FastifyInstance } from 'fastify'
import { limitReads } from '../http/admin-reads.ts'
import { limitWrites } from '../http/admin-writes.ts'
import type { BrokerContext } from '../worker/context.ts'
import { ackRoutes } from './ack.ts'
import { consumerGroupRoutes } from './consumer-groups.ts'
import { deadLetterRoutes } from './dead-letters.ts'
import { healthRoutes } from './health.ts'
import { leaseRoutes } from './leases.ts'
import { messageRoutes } from './messages.ts'
import { popRoutes } from './pop.ts'
import { pushRoute } from './push.ts'
import { queueRoutes } from './queues.ts'
import { scheduleRoutes } from './schedules.ts'
import { statsRoutes } from './stats.ts'
import { traceRoutes } from './traces.ts'
import { transactionRoute } from './transaction.ts'
import { whyRoute } from './why.ts'

export function registerRoutes(app: FastifyInstance, context: BrokerContext): void {
  pushRoute(app, context)
  popRoutes(app, context)
  ackRoutes(app, context)
  transactionRoute(app, context)
  leaseRoutes(app, context)
  healthRoutes(app, context)
  statsRoutes(app, context)

  limitReads(app, { timeoutMs: context.config.writeTimeoutMs })
  limitWrites(app, {
    timeoutMs: context.config.writeTimeoutMs,
    onOutcomeUnknown: () => context.coordinator.notifyOutcomeUnknown(),
  })
  queueRoutes(app, context)
  consumerGroupRoutes(app, context)
  whyRoute(app, context)
  messageRoutes(app, context)
  deadLetterRoutes(app, context)
  traceRoutes(app, context)
  scheduleRoutes(app, context)
}
