// Reads the files of a run into one history, line by line: a million messages are about a gigabyte of text.
import { createReadStream } from 'node:fs'
import { History } from './history.ts'
import { HistoryTables } from './history-tables.ts'
import type { SentCall } from './history-writer.ts'
import type { HistoryRecord } from './records.ts'

export async function readHistory(paths: readonly string[]): Promise<History> {
  const tables = new HistoryTables()
  for (const path of paths) await readFile(path, tables)
  return new History(tables)
}

type AnswerLine = { readonly answers?: number } & HistoryRecord

/**
 * Finds `sent` lines without parsing their JSON. Most calls have a response, and its line repeats the
 * request, so a `sent` line is parsed only if its call has no response.
 */
const sentLine = /^\{"sent":(\d+),/

async function readFile(path: string, tables: HistoryTables): Promise<void> {
  const unanswered = new Map<number, string>()
  const giveUp = (): void => {
    for (const text of unanswered.values())
      tables.add(unansweredRecord(JSON.parse(text) as SentCall))
    unanswered.clear()
  }
  for await (const text of linesOf(path)) {
    const [, number] = sentLine.exec(text) ?? []
    if (number !== undefined) {
      const sent = Number(number)
      // The numbers start again: another process continues this file, and the calls of the previous process
      // get no more responses.
      if (unanswered.has(sent) || sent === 1) giveUp()
      unanswered.set(sent, text)
    } else {
      const line = JSON.parse(text) as AnswerLine
      if (line.answers !== undefined) unanswered.delete(line.answers)
      tables.add(line)
    }
  }
  giveUp()
}

/** Yields complete lines only: a line without a newline was cut off when its writer died. */
async function* linesOf(path: string): AsyncIterable<string> {
  let rest = ''
  for await (const chunk of createReadStream(path, { encoding: 'utf8', highWaterMark: 1 << 20 })) {
    const lines = (rest + (chunk as string)).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}

/**
 * The record of a call whose client died before the response. The call may have taken effect at any later
 * time.
 */
function unansweredRecord(call: SentCall): HistoryRecord {
  const unknown = { end: Number.POSITIVE_INFINITY, outcome: 'unknown' } as const
  return call.kind === 'pop' ? { ...call, ...unknown, messages: [] } : { ...call, ...unknown }
}
