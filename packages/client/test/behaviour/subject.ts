// What the behaviour suites need of an implementation, and how they wait.
import type { Test } from 'tap'
import type { Message, Rouse, RouseOptions } from '../../src/index.ts'

export interface Subject {
  readonly rouse: Rouse
  /** Lets time pass: real time, or that of the virtual clock. */
  pass(ms: number): Promise<void>
}

export type OpenSubject = (t: Test, options?: Partial<RouseOptions>) => Promise<Subject>

/** Resolves when the condition holds. */
export async function until(
  subject: Subject,
  condition: () => boolean | Promise<boolean>,
): Promise<void> {
  for (let tries = 0; !(await condition()); tries += 1) {
    if (tries > 400) throw new Error('the condition did not become true')
    await subject.pass(25)
  }
}

export function dataOf(messages: readonly Message[]): unknown[] {
  return messages.map(({ data }) => data)
}

export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}
