// Reads the files of a run into one history. Lines are parsed one by one: a million messages take about a gigabyte of text.
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

/** Most calls are answered: what was sent is parsed only where nothing else is known. */
const sentLine = /^\{"sent":(\d+),/

async function readFile(path: string, tables: HistoryTables): Promise<void> {
  const unanswered = new Map<number, string>()
  const giveUp = (): void => {
    for (const text of unanswered.values()) tables.add(unheard(JSON.parse(text) as SentCall))
    unanswered.clear()
  }
  for await (const text of linesOf(path)) {
    const [, number] = sentLine.exec(text) ?? []
    if (number !== undefined) {
      const sent = Number(number)
      // Numbers that begin again: another process went on in this file, and the one before will not hear any more.
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

/** Whole lines only: one without its end was torn by the death of its writer. */
async function* linesOf(path: string): AsyncIterable<string> {
  let rest = ''
  for await (const chunk of createReadStream(path, { encoding: 'utf8', highWaterMark: 1 << 20 })) {
    const lines = (rest + (chunk as string)).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}

/** What a client that died before it heard leaves behind: it may have happened, then or any time later. */
function unheard(call: SentCall): HistoryRecord {
  const heard = { end: Number.POSITIVE_INFINITY, outcome: 'unknown' } as const
  return call.kind === 'pop' ? { ...call, ...heard, messages: [] } : { ...call, ...heard }
}
