import { AckAnswerSchema } from '../schemas/ack.ts'
import { AuditAnswerSchema } from '../schemas/audit.ts'
import { ConfigureAnswerSchema } from '../schemas/configure.ts'
import {
  DeadLetterGroupsAnswerSchema,
  DeadLettersAnswerSchema,
  PurgedLettersAnswerSchema,
  RedriveSchema,
} from '../schemas/dead-letters.ts'
import {
  GroupFiguresAnswerSchema,
  GroupFiguresSchema,
  GroupsAnswerSchema,
} from '../schemas/groups.ts'
import { KeysAnswerSchema, NewKeyAnswerSchema, RevokedKeyAnswerSchema } from '../schemas/keys.ts'
import { ExtendAnswerSchema, ReleaseAnswerSchema } from '../schemas/lease.ts'
import {
  CancelAnswerSchema,
  CancelManyAnswerSchema,
  MessageAnswerSchema,
  MessageByIdAnswerSchema,
  MessagesAnswerSchema,
  RunNowAnswerSchema,
} from '../schemas/messages.ts'
import { PopAnswerSchema } from '../schemas/pop.ts'
import { PushAnswerSchema } from '../schemas/push.ts'
import {
  DeletedAnswerSchema,
  PausedAnswerSchema,
  PurgedAnswerSchema,
  QueueFiguresAnswerSchema,
  QueueFiguresSchema,
  QueueSchema,
  QueuesAnswerSchema,
} from '../schemas/queues.ts'
import { ScheduleSchema, SchedulesAnswerSchema } from '../schemas/schedules.ts'
import { SeriesAnswerSchema } from '../schemas/series.ts'
import { StatsAnswerSchema } from '../schemas/stats.ts'
import { TraceAnswerSchema, TraceNamesAnswerSchema, TracesAnswerSchema } from '../schemas/traces.ts'
import { TransactionAnswerSchema } from '../schemas/transaction.ts'
import { WhyAnswerSchema } from '../schemas/why.ts'

/** The responses of endpoints that succeed, by method and path. Others are described in words only. */
export const answers: Readonly<Record<string, object>> = {
  'POST /api/v1/push': PushAnswerSchema,
  'GET /api/v1/pop': PopAnswerSchema,
  'POST /api/v1/pop': PopAnswerSchema,
  'GET /api/v1/pop/queue/:queue': PopAnswerSchema,
  'POST /api/v1/pop/queue/:queue': PopAnswerSchema,
  'GET /api/v1/pop/queue/:queue/partition/:partition': PopAnswerSchema,
  'POST /api/v1/pop/queue/:queue/partition/:partition': PopAnswerSchema,
  'POST /api/v1/ack': AckAnswerSchema,
  'POST /api/v1/ack/batch': AckAnswerSchema,
  'POST /api/v1/transaction': TransactionAnswerSchema,
  'POST /api/v1/lease/:leaseId/extend': ExtendAnswerSchema,
  'DELETE /api/v1/lease/:leaseId': ReleaseAnswerSchema,
  'GET /api/v1/messages': MessagesAnswerSchema,
  'DELETE /api/v1/messages': CancelManyAnswerSchema,
  'GET /api/v1/messages/:id': MessageByIdAnswerSchema,
  'DELETE /api/v1/messages/:id': CancelAnswerSchema,
  'POST /api/v1/messages/:id/run-now': RunNowAnswerSchema,
  'GET /api/v1/messages/:partitionId/:transactionId': MessageAnswerSchema,
  'GET /api/v1/dlq': DeadLettersAnswerSchema,
  'DELETE /api/v1/dlq': PurgedLettersAnswerSchema,
  'GET /api/v1/dlq/groups': DeadLetterGroupsAnswerSchema,
  'POST /api/v1/dlq/redrive': RedriveSchema,
  'GET /api/v1/dlq/redrive/:id': RedriveSchema,
  'DELETE /api/v1/dlq/redrive/:id': RedriveSchema,
  'DELETE /api/v1/dead-letters': PurgedLettersAnswerSchema,
  'POST /api/v1/dead-letters/redrives': RedriveSchema,
  'GET /api/v1/dead-letters/redrives/:id': RedriveSchema,
  'DELETE /api/v1/dead-letters/redrives/:id': RedriveSchema,
  'POST /api/v1/traces': TraceAnswerSchema,
  'GET /api/v1/traces/:partitionId/:transactionId': TracesAnswerSchema,
  'GET /api/v1/traces/by-name/:name': TracesAnswerSchema,
  'GET /api/v1/traces/names': TraceNamesAnswerSchema,
  'POST /api/v1/configure': ConfigureAnswerSchema,
  'GET /api/v1/queues': QueueFiguresAnswerSchema,
  'GET /api/v1/queues/:queue': QueueFiguresSchema,
  'PUT /api/v1/queues/:queue': QueueFiguresSchema,
  'PATCH /api/v1/queues/:queue': QueueFiguresSchema,
  'DELETE /api/v1/queues/:queue': DeletedAnswerSchema,
  'GET /api/v1/resources/queues': QueuesAnswerSchema,
  'GET /api/v1/resources/queues/:queue': QueueSchema,
  'DELETE /api/v1/resources/queues/:queue': DeletedAnswerSchema,
  'POST /api/v1/queues/:queue/pause': PausedAnswerSchema,
  'POST /api/v1/queues/:queue/resume': PausedAnswerSchema,
  'POST /api/v1/queues/:queue/purge': PurgedAnswerSchema,
  'GET /api/v1/queues/:queue/why': WhyAnswerSchema,
  'GET /api/v1/schedules': SchedulesAnswerSchema,
  'POST /api/v1/schedules': ScheduleSchema,
  'GET /api/v1/schedules/:name': ScheduleSchema,
  'PUT /api/v1/schedules/:name': ScheduleSchema,
  'DELETE /api/v1/schedules/:name': DeletedAnswerSchema,
  'GET /api/v1/groups': GroupFiguresAnswerSchema,
  'GET /api/v1/groups/:group/queues/:queue': GroupFiguresSchema,
  'DELETE /api/v1/groups/:group': DeletedAnswerSchema,
  'DELETE /api/v1/groups/:group/queues/:queue': DeletedAnswerSchema,
  'GET /api/v1/consumer-groups': GroupsAnswerSchema,
  'DELETE /api/v1/consumer-groups/:group': DeletedAnswerSchema,
  'DELETE /api/v1/consumer-groups/:group/queues/:queue': DeletedAnswerSchema,
  'GET /stats': StatsAnswerSchema,
  'POST /api/v1/keys': NewKeyAnswerSchema,
  'GET /api/v1/keys': KeysAnswerSchema,
  'POST /api/v1/keys/:keyId/rotate': NewKeyAnswerSchema,
  'DELETE /api/v1/keys/:keyId': RevokedKeyAnswerSchema,
  'GET /api/v1/series': SeriesAnswerSchema,
  'GET /api/v1/audit': AuditAnswerSchema,
}
