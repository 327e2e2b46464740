import type { History } from '../history/history.ts'
import type { Message } from '../history/history-views.ts'
import type { AuditRecord } from '../history/records.ts'

type Letter = AuditRecord['deadLetters'][number]

/** The dead letters found by the audit, by message. */
export interface DeadLetterIndex {
  readonly count: number
  has(message: Message, group: string): boolean
  of(message: Message, group: string): readonly Letter[]
}

export function deadLetters({ audit }: History): DeadLetterIndex {
  const letters = new Map<string, Letter[]>()
  for (const letter of audit?.deadLetters ?? []) {
    const place = placeOf(letter.queue, letter.group, letter.value)
    const known = letters.get(place)
    if (known === undefined) letters.set(place, [letter])
    else known.push(letter)
  }
  const of = ({ queue, value }: Message, group: string): readonly Letter[] =>
    letters.size === 0 ? [] : (letters.get(placeOf(queue, group, value)) ?? [])
  return { count: letters.size, of, has: (message, group) => of(message, group).length > 0 }
}

function placeOf(queue: string, group: string, value: string): string {
  return JSON.stringify([queue, group, value])
}
