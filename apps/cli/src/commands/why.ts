import type { Command } from 'commander'
import colors from 'picocolors'
import { type Json, query, segment } from '../api.ts'
import { CliError } from '../cli-error.ts'
import { helpFor } from '../screen/why-help.ts'
import { wrap } from '../screen/wrap.ts'
import { sessionOf, verb } from '../verb.ts'

interface Options {
  readonly group?: string
  readonly message?: string
}

export function whyVerb(program: Command): void {
  verb(
    program,
    'why',
    'explain why nothing is delivered, or why a message took long',
    `rouse why orders
rouse why orders --group billing
rouse why --message 01a1ed96-3a3b-7040-8000-000000000021`,
  )
    .argument('[queue]')
    .option('-g, --group <group>', 'only this consumer group')
    .option('-m, --message <id>', 'the timeline of this message')
    .action(async (queue: string | undefined, _options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      const asked = query({ consumerGroup: options.group })
      if ((queue === undefined) === (options.message === undefined)) {
        throw new CliError('usage', 'name a queue, or a message with --message ID')
      }
      if (options.message !== undefined) {
        const { body } = await api.get(`/api/v1/messages/${segment(options.message)}/why${asked}`)
        if (!output.isHuman) return output.json(body)
        for (const line of timeline(body as Timeline)) output.line(line)
        return
      }
      const { body } = await api.get(`/api/v1/queues/${segment(queue ?? '')}/why${asked}`)
      if (!output.isHuman) return output.json(body)
      for (const line of whyLines(queue ?? '', body.reasons, output.width)) output.line(line)
    })
}

/** The reasons by consumer group, then the commands that help. */
export function whyLines(queue: string, reasons: readonly Json[], width = 100): string[] {
  const names = reasons.map(({ consumerGroup }) => shownGroup(consumerGroup))
  const widest = Math.max(...names.map((name) => name.length))
  const indent = widest === 0 ? 0 : widest + 2
  const lines = reasons.flatMap(({ text }, i) => {
    // The name once, above the reasons of its group.
    const name = names[i] === names[i - 1] ? '' : (names[i] as string)
    const [first = '', ...rest] = wrap(text, width - indent)
    const margin = ' '.repeat(indent)
    const label = name === '' ? margin : colors.bold(name.padEnd(indent))
    return [`${label}${first}`, ...rest.map((line) => `${margin}${line}`)]
  })
  const help = helpFor(queue, reasons)
  if (help.length === 0) return lines
  const labels = Math.max(...help.map(({ label }) => label.length)) + 2
  const isShort = help.every(({ command }) => labels + command.length <= width)
  const commands = help.flatMap(({ label, command }) => {
    const shown = colors.cyan(command)
    return isShort ? [`${`${label}:`.padEnd(labels)}${shown}`] : [`${label}:`, `  ${shown}`]
  })
  return [...lines, '', ...commands]
}

/** The reasons of the queue itself have no group. */
function shownGroup(group: string | undefined): string {
  if (group === undefined) return ''
  return group === '__QUEUE_MODE__' ? 'default' : group
}

interface Timeline {
  readonly summary: string
  readonly culprit: { readonly action: string | null } | null
  readonly steps: readonly { readonly ms: number; readonly step: string; readonly text: string }[]
  readonly notRecorded: readonly { readonly text: string }[]
}

function timeline({ summary, culprit, steps, notRecorded }: Timeline): string[] {
  const action = culprit?.action ?? null
  return [
    summary,
    ...(action === null ? [] : [action]),
    ...steps.map(({ ms, step, text }) => `${`${ms} ms`.padStart(12)}  ${step.padEnd(9)}  ${text}`),
    ...notRecorded.map(({ text }) => text),
  ]
}
