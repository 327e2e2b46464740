import { type Command, Option } from 'commander'
import { type Json, segment } from '../api.ts'
import { CliError } from '../cli-error.ts'
import { wallMs } from '../clock.ts'
import { type ConfirmOptions, confirm, withConfirmation } from '../confirm.ts'
import { stringifyExact } from '../exact-json.ts'
import { ago, collect, since } from '../format.ts'
import { defaultVerb, sessionOf, verb } from '../verb.ts'
import { headersOf, payloadOf } from './push.ts'

export function schedulesVerb(program: Command): void {
  const schedules = verb(
    program,
    'schedules',
    'list, set, run and delete schedules, which push messages by a cron pattern',
    `rouse schedules
rouse schedules put nightly --queue reports --cron '0 3 * * *' --time-zone Europe/Berlin
rouse schedules run nightly`,
  )
  addList(schedules)
  addShow(schedules)
  addPut(schedules)
  addRun(schedules)
  addRemove(schedules)
}

function addList(schedules: Command): void {
  defaultVerb(schedules, 'list', 'list schedules', 'rouse schedules list').action(
    async (_options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const found = await api.all('/api/v1/schedules', 'schedules')
      if (!output.isHuman) return output.json(found)
      const now = wallMs()
      output.table<Json>(
        found,
        [
          { title: 'NAME', value: ({ name }) => name, widthMin: 12 },
          { title: 'QUEUE', value: ({ queue }) => queue, widthMin: 8 },
          { title: 'CRON', value: ({ cron }) => cron },
          { title: 'TIME ZONE', value: ({ timeZone }) => timeZone, widthMin: 9 },
          { title: 'NEXT', align: 'right', widthLeast: 9, value: (row) => nextOf(row, now) },
          { title: 'LAST', align: 'right', widthLeast: 10, value: (row) => lastOf(row, now) },
        ],
        'no schedules yet; rouse schedules put NAME --queue QUEUE --cron PATTERN creates one',
      )
    },
  )
}

function nextOf({ paused, nextAt }: Json, nowMs: number): string {
  if (paused === true) return 'paused'
  return nextAt === null ? '–' : `in ${ago(Date.parse(nextAt) - nowMs)}`
}

function lastOf({ lastAt }: Json, nowMs: number): string {
  return lastAt === null ? 'never' : `${since(lastAt, nowMs)} ago`
}

function addShow(schedules: Command): void {
  verb(schedules, 'show', 'show a schedule', 'rouse schedules show nightly')
    .argument('<schedule>')
    .alias('get')
    .action(async (name: string, _options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const { body } = await api.get(`/api/v1/schedules/${segment(name)}`)
      if (!output.isHuman) return output.json(body)
      const { queue, partition, cron, timeZone, nextAt, lastAt, catchUp, headers, payload } = body
      output.fields([
        ['name', body.name],
        ['queue', queue],
        ['partition', partition],
        ['cron', cron],
        ['time zone', timeZone],
        ['next', body.paused === true ? 'paused' : nextAt],
        ['last', lastAt ?? 'never'],
        ['catch up', catchUp],
        ['headers', headers === null ? null : stringifyExact(headers)],
        ['payload', stringifyExact(payload, 2)],
      ])
    })
}

interface PutOptions {
  readonly queue: string
  readonly cron: string
  readonly timeZone?: string
  readonly payload?: string
  readonly partition?: string
  readonly header?: readonly string[]
  readonly catchUp?: string
  readonly paused?: boolean
}

function addPut(schedules: Command): void {
  verb(
    schedules,
    'put',
    'create or replace a schedule',
    `rouse schedules put nightly --queue reports --cron '0 3 * * *' --time-zone Europe/Berlin`,
  )
    .argument('<schedule>')
    .requiredOption('-q, --queue <queue>', 'the queue that gets the messages')
    .requiredOption(
      '--cron <pattern>',
      'five fields, six with seconds in front, or @daily and such',
    )
    .option('--time-zone <zone>', 'such as Europe/Berlin (default: UTC)')
    .option('--payload <json>', 'the payload; @FILE reads it from a file (default: null)')
    .option('-p, --partition <name>', 'messages of a partition keep their order')
    .option('-H, --header <name=value>', 'a header of the messages; may be repeated', collect)
    .addOption(
      new Option('--catch-up <which>', 'which missed ticks are pushed later').choices([
        'none',
        'last',
        'all',
      ]),
    )
    .option('--paused', 'store the schedule without running it')
    .action(async (name: string, _options: PutOptions, command: Command) => {
      const { api, output, options } = sessionOf<PutOptions>(command)
      const { queue, cron, timeZone, payload, partition, header, catchUp, paused } = options
      const given = {
        queue,
        cron,
        timeZone,
        payload: payload === undefined ? undefined : payloadOf(payload),
        partition,
        headers: header === undefined ? undefined : headersOf(header),
        catchUp,
        paused,
      }
      const { body } = await api.put(`/api/v1/schedules/${segment(name)}`, given)
      if (!output.isHuman) return output.json(body)
      output.line(`${name}: ${body.paused === true ? 'stored, paused' : `next at ${body.nextAt}`}`)
    })
}

function addRun(schedules: Command): void {
  verb(
    schedules,
    'run',
    'push the message of a schedule now; its ticks stay as they are',
    'rouse schedules run nightly',
  )
    .argument('<schedule>')
    .action(async (name: string, _options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const { body } = await api.get(`/api/v1/schedules/${segment(name)}`)
      const { queue, partition, payload, headers, undecrypted } = body
      if (undecrypted === true) {
        throw new CliError('server', `${name}: the payload is encrypted, and the node has no key`)
      }
      const item = {
        queue,
        payload,
        headers: { ...headers, schedule: name, scheduledAt: new Date(wallMs()).toISOString() },
        ...(partition === null ? {} : { partition }),
      }
      const pushed = await api.post('/api/v1/push', { items: [item] })
      if (!output.isHuman) return output.json(pushed.body)
      output.line(`${pushed.body[0].status}  ${pushed.body[0].id}`)
    })
}

function addRemove(schedules: Command): void {
  withConfirmation(
    verb(schedules, 'rm', 'delete a schedule; its messages stay', 'rouse schedules rm nightly'),
  )
    .argument('<schedule>')
    .action(async (name: string, _options: ConfirmOptions, command: Command) => {
      const { api, output, options } = sessionOf<ConfirmOptions>(command)
      await confirm(`delete schedule "${name}"`, api, options)
      const { body } = await api.delete(`/api/v1/schedules/${segment(name)}`)
      if (!output.isHuman) return output.json(body)
      output.line(`${name}: deleted`)
    })
}
