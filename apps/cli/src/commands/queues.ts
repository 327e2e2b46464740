import type { Command } from 'commander'
import { type Api, type Json, query, segment } from '../api.ts'
import { CliError } from '../cli-error.ts'
import { type ConfirmOptions, confirm, withConfirmation } from '../confirm.ts'
import { messageCount } from '../format.ts'
import { formatQueues } from '../screen/queue-table.ts'
import { shellLine } from '../shell.ts'
import { defaultVerb, sessionOf, verb } from '../verb.ts'

export function queuesVerb(program: Command): void {
  const queues = verb(
    program,
    'queues',
    'list queues, the worst first, or manage one',
    `rouse queues
rouse queues get orders
rouse queues purge orders`,
  )
  addList(queues)
  addGet(queues)
  addPauseAndResume(queues, 'queues ')
  addPurge(queues)
  addRemove(queues)
}

/** `rouse pause` and `rouse resume`, the same as under `rouse queues`. */
export function pauseVerbs(program: Command): void {
  addPauseAndResume(program, '')
}

interface ListOptions {
  readonly search?: string
}

function addList(queues: Command): void {
  defaultVerb(queues, 'list', 'list queues, the worst first', 'rouse queues list --search orders')
    .option('--search <text>', 'only queues whose name contains this')
    .action(async (_options: ListOptions, command: Command) => {
      const { api, output, options } = sessionOf<ListOptions>(command)
      if (!output.isHuman) return output.json(await queuesAsJson(api, options.search))
      const found = await readQueues(api, options.search)
      if (found.length === 0) {
        return output.table([], [], 'no queues yet; rouse push QUEUE JSON creates one')
      }
      for (const line of formatQueues(found, output.width)) output.line(line)
    })
}

/** All queues with their figures, in as few requests as possible. */
export function readQueues(api: Api, search?: string): Promise<Json[]> {
  return api.all(`/api/v1/queues${query({ limit: 10_000, search })}`, 'queues')
}

/** Each queue with its figures and its consumer groups. */
export async function queuesAsJson(api: Api, search?: string): Promise<Json[]> {
  const [queues, figures] = await Promise.all([
    api.all(`/api/v1/resources/queues${query({ search })}`, 'queues'),
    readQueues(api, search),
  ])
  const figuresOf = new Map(figures.map((one) => [one.queue, one]))
  return queues.map((one) => ({ ...figuresOf.get(one.queue), ...one }))
}

function addGet(queues: Command): void {
  verb(queues, 'get', 'show one queue with its options', 'rouse queues get orders')
    .argument('<queue>')
    .alias('show')
    .action(async (queue: string, _options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const [{ body }, { body: figures }] = await Promise.all([
        api.get(`/api/v1/resources/queues/${segment(queue)}`),
        api.get(`/api/v1/queues/${segment(queue)}`),
      ])
      if (!output.isHuman) return output.json({ ...figures, ...body })
      for (const line of formatQueues([figures], output.width)) output.line(line)
      if (body.purging !== undefined)
        output.line(`purge in progress since ${body.purging.requestedAt}`)
      output.line()
      output.table(
        Object.entries(body.options).sort(([a], [b]) => (a < b ? -1 : 1)),
        [
          { title: 'OPTION', value: ([name]) => name },
          { title: 'VALUE', value: ([, value]) => JSON.stringify(value), widthMin: 20 },
        ],
        '',
      )
      output.hint('change one', `${shellLine('rouse', 'configure', queue)} NAME=VALUE`)
    })
}

function addPauseAndResume(parent: Command, prefix: string): void {
  for (const [name, description] of [
    ['pause', 'stop the delivery of a queue; pushes are still stored'],
    ['resume', 'resume the delivery of a queue'],
  ] as const) {
    verb(parent, name, description, `rouse ${prefix}${name} orders`)
      .argument('<queue>')
      .action(async (queue: string, _options: object, command: Command) => {
        const { api, output } = sessionOf(command)
        const { body } = await api.post(`/api/v1/queues/${segment(queue)}/${name}`)
        if (!output.isHuman) return output.json(body)
        output.line(`${queue}: ${name}d`)
        if (name === 'pause') output.hint('resume with', shellLine('rouse', 'resume', queue))
      })
  }
}

function addPurge(queues: Command): void {
  withConfirmation(
    verb(queues, 'purge', 'delete all messages of a queue', 'rouse queues purge orders --yes'),
  )
    .argument('<queue>')
    .action(async (queue: string, _options: ConfirmOptions, command: Command) => {
      const { api, output, options } = sessionOf<ConfirmOptions>(command)
      await confirm(`delete ${await contentsOf(queue, api)} of queue "${queue}"`, api, options)
      const { body } = await api.post(`/api/v1/queues/${segment(queue)}/purge`)
      if (!output.isHuman) return output.json(body)
      output.line(purgedLine(queue, body))
    })
}

function purgedLine(queue: string, { purged, purging }: Json): string {
  return purging === true
    ? `${queue}: the queue is large and is purged in the background; "${shellLine('rouse', 'queues', 'get', queue)}" shows whether the purge is still in progress`
    : `${queue}: ${messageCount(purged)} deleted`
}

function addRemove(queues: Command): void {
  withConfirmation(
    verb(queues, 'rm', 'delete a queue and its messages', 'rouse queues rm orders --yes'),
  )
    .argument('<queue>')
    .action(async (queue: string, _options: ConfirmOptions, command: Command) => {
      const { api, output, options } = sessionOf<ConfirmOptions>(command)
      await confirm(`delete queue "${queue}" with ${await contentsOf(queue, api)}`, api, options)
      const { body } = await api.delete(`/api/v1/queues/${segment(queue)}`)
      if (output.isHuman) output.line(`${queue}: deleted`)
      else output.json(body)
    })
}

/** What a purge deletes, in words. Completed messages that are still kept are not counted. */
async function contentsOf(queue: string, api: Api): Promise<string> {
  let figures: Json
  try {
    figures = (await api.get(`/api/v1/queues/${segment(queue)}`)).body
  } catch (error) {
    // A key may have the grant to delete and not the one to look.
    if (error instanceof CliError && error.status === 403) return 'all messages'
    throw error
  }
  const { ready, leased, retrying, scheduled, dead } = figures
  const waiting: number = ready + leased + retrying + scheduled
  const letters = dead === 0 ? '' : ` and ${dead === 1 ? '1 dead letter' : `${dead} dead letters`}`
  return `${waiting === 0 ? 'no waiting messages' : messageCount(waiting)}${letters}`
}
