import { AckAnswerSchema } from '../schemas/ack.ts'
import { AuditAnswerSchema } from '../schemas/audit.ts'
import { ConfigureAnswerSchema } from '../schemas/configure.ts'
import {
  DeadLetterErrorsAnswerSchema,
  DeadLetterGroupsAnswerSchema,
  DeadLettersAnswerSchema,
  DeadLettersOfMessageAnswerSchema,
  DeadLettersPageAnswerSchema,
  PurgedLettersAnswerSchema,
  RedrivePlanSchema,
  RedriveSchema,
} from '../schemas/dead-letters.ts'
import {
  DeletedLettersAnswerSchema,
  GroupPartitionsAnswerSchema,
  LaggingAnswerSchema,
  NamespacesAnswerSchema,
  OverviewAnswerSchema,
  TasksAnswerSchema,
} from '../schemas/existing-clients.ts'
import {
  GroupFiguresAnswerSchema,
  GroupFiguresSchema,
  GroupInQueuesAnswerSchema,
  GroupsAnswerSchema,
  MovedAnswerSchema,
  MovedPartitionAnswerSchema,
  SubscribedAnswerSchema,
} from '../schemas/groups.ts'
import {
  KeysAnswerSchema,
  NewKeyAnswerSchema,
  RevokedKeyAnswerSchema,
  SessionAnswerSchema,
} from '../schemas/keys.ts'
import { ExtendAnswerSchema, ReleaseAnswerSchema } from '../schemas/lease.ts'
import {
  CancelAnswerSchema,
  CancelManyAnswerSchema,
  MessageAnswerSchema,
  MessageByIdAnswerSchema,
  MessagesAnswerSchema,
  ProgressAnswerSchema,
  RunNowAnswerSchema,
} from '../schemas/messages.ts'
import {
  LiveAnswerSchema,
  NodesAnswerSchema,
  OpenApiAnswerSchema,
  ReadyAnswerSchema,
  WelcomeAnswerSchema,
} from '../schemas/node.ts'
import { MessageWhyAnswerSchema } from '../schemas/observe/message-why.ts'
import { SeriesAnswerSchema } from '../schemas/observe/series.ts'
import { StatsAnswerSchema } from '../schemas/observe/stats.ts'
import { WhyAnswerSchema } from '../schemas/observe/why.ts'
import { PopAnswerSchema } from '../schemas/pop.ts'
import { PushAnswerSchema } from '../schemas/push.ts'
import {
  DeletedAnswerSchema,
  PausedAnswerSchema,
  PurgedAnswerSchema,
  QueueDetailSchema,
  QueueFiguresAnswerSchema,
  QueueFiguresSchema,
  QueuesAnswerSchema,
} from '../schemas/queues.ts'
import { ScheduleSchema, SchedulesAnswerSchema } from '../schemas/schedules.ts'
import { TraceAnswerSchema, TraceNamesAnswerSchema, TracesAnswerSchema } from '../schemas/traces.ts'
import { TransactionAnswerSchema } from '../schemas/transaction.ts'

/** The JSON of endpoints that succeed, by method and path. */
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
  'POST /api/v1/messages/:id/progress': ProgressAnswerSchema,
  'GET /api/v1/messages/:partitionId/:transactionId': MessageAnswerSchema,
  'DELETE /api/v1/messages/:partitionId/:transactionId': DeletedLettersAnswerSchema,
  'GET /api/v1/dlq': DeadLettersAnswerSchema,
  'DELETE /api/v1/dlq': PurgedLettersAnswerSchema,
  'GET /api/v1/dlq/groups': DeadLetterGroupsAnswerSchema,
  'POST /api/v1/dlq/redrive': RedriveSchema,
  'GET /api/v1/dlq/redrive/:id': RedriveSchema,
  'DELETE /api/v1/dlq/redrive/:id': RedriveSchema,
  'GET /api/v1/dead-letters': DeadLettersPageAnswerSchema,
  'GET /api/v1/dead-letters/:id': DeadLettersOfMessageAnswerSchema,
  'GET /api/v1/dead-letters/errors': DeadLetterErrorsAnswerSchema,
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
  'GET /api/v1/resources/queues/:queue': QueueDetailSchema,
  'GET /api/v1/resources/namespaces': NamespacesAnswerSchema,
  'GET /api/v1/resources/tasks': TasksAnswerSchema,
  'GET /api/v1/resources/overview': OverviewAnswerSchema,
  'DELETE /api/v1/resources/queues/:queue': DeletedAnswerSchema,
  'POST /api/v1/queues/:queue/pause': PausedAnswerSchema,
  'POST /api/v1/queues/:queue/resume': PausedAnswerSchema,
  'POST /api/v1/queues/:queue/purge': PurgedAnswerSchema,
  'GET /api/v1/messages/:id/why': MessageWhyAnswerSchema,
  'GET /api/v1/queues/:queue/why': WhyAnswerSchema,
  'GET /api/v1/schedules': SchedulesAnswerSchema,
  'POST /api/v1/schedules': ScheduleSchema,
  'GET /api/v1/schedules/:name': ScheduleSchema,
  'PUT /api/v1/schedules/:name': ScheduleSchema,
  'DELETE /api/v1/schedules/:name': DeletedAnswerSchema,
  'GET /api/v1/groups': GroupFiguresAnswerSchema,
  'GET /api/v1/groups/:group': GroupInQueuesAnswerSchema,
  'GET /api/v1/groups/:group/queues/:queue': GroupFiguresSchema,
  'DELETE /api/v1/groups/:group': DeletedAnswerSchema,
  'DELETE /api/v1/groups/:group/queues/:queue': DeletedAnswerSchema,
  'POST /api/v1/groups/:group/queues/:queue/seek': MovedAnswerSchema,
  'GET /api/v1/consumer-groups/lagging': LaggingAnswerSchema,
  'GET /api/v1/consumer-groups/:group': GroupPartitionsAnswerSchema,
  'POST /api/v1/consumer-groups/:group/queues/:queue/seek': MovedAnswerSchema,
  'POST /api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek':
    MovedPartitionAnswerSchema,
  'POST /api/v1/consumer-groups/:group/queues/:queue/subscription': MovedAnswerSchema,
  'POST /api/v1/consumer-groups/:group/subscription': SubscribedAnswerSchema,
  'GET /api/v1/consumer-groups': GroupsAnswerSchema,
  'DELETE /api/v1/consumer-groups/:group': DeletedAnswerSchema,
  'DELETE /api/v1/consumer-groups/:group/queues/:queue': DeletedAnswerSchema,
  'GET /': WelcomeAnswerSchema,
  'GET /openapi.json': OpenApiAnswerSchema,
  'GET /live': LiveAnswerSchema,
  'GET /ready': ReadyAnswerSchema,
  'GET /health': ReadyAnswerSchema,
  'GET /api/v1/nodes': NodesAnswerSchema,
  'GET /stats': StatsAnswerSchema,
  'POST /api/v1/keys': NewKeyAnswerSchema,
  'GET /api/v1/keys': KeysAnswerSchema,
  'POST /api/v1/keys/:keyId/rotate': NewKeyAnswerSchema,
  'DELETE /api/v1/keys/:keyId': RevokedKeyAnswerSchema,
  'GET /api/v1/series': SeriesAnswerSchema,
  'GET /api/v1/audit': AuditAnswerSchema,
  'POST /api/v1/session': SessionAnswerSchema,
  'GET /api/v1/session': SessionAnswerSchema,
  'DELETE /api/v1/session': SessionAnswerSchema,
}

/** The media types of endpoints that do not return JSON. */
export const textAnswers: Readonly<Record<string, string>> = {
  'GET /docs': 'text/html',
  'GET /docs/api': 'text/html',
  'GET /docs/:page': 'text/html',
  'GET /docs/:folder/:page': 'text/html',
  'GET /dashboard': 'text/html',
  'GET /dashboard/': 'text/html',
  'GET /dashboard/:file': 'text/',
  'GET /api/v1/events': 'text/event-stream',
  'GET /metrics': 'text/plain',
}

/** The JSON of other statuses that are successes, too. */
export const otherAnswers: Readonly<Record<string, Readonly<Record<number, object>>>> = {
  'POST /api/v1/dlq/redrive': { 200: RedrivePlanSchema },
  'POST /api/v1/dead-letters/redrives': { 200: RedrivePlanSchema },
  'POST /api/v1/queues/:queue/purge': { 202: PurgedAnswerSchema },
}
