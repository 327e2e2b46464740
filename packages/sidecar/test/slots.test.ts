import { test } from 'tap'
import { Semaphore } from '../src/slots.ts'

/** Tasks that start when they get a slot, and end when the test ends them. */
function worksAt(semaphore: Semaphore) {
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  return {
    begun,
    asks(name: string, kind: string, urgency: 'urgent' | 'patient' = 'urgent'): void {
      const work = () => {
        begun.push(name)
        return new Promise<void>((resolve) => ends.set(name, resolve))
      }
      void semaphore.use(work, urgency, kind)
    },
    async end(name: string): Promise<void> {
      ends.get(name)?.()
      await new Promise(setImmediate)
    },
  }
}

test('one kind of work leaves slots to others, and gets its own back when it continues', async (t) => {
  const works = worksAt(new Semaphore(3, 2))
  for (const name of ['a1', 'a2', 'a3']) works.asks(name, 'a')
  t.same(works.begun, ['a1', 'a2'])
  works.asks('b1', 'b')
  t.same(works.begun, ['a1', 'a2', 'b1'])
  works.asks('b2', 'b')
  await works.end('b1')
  t.same(works.begun, ['a1', 'a2', 'b1', 'b2'], 'not a3, although it was first')
  await works.end('a1')
  t.same(works.begun.at(-1), 'a3')
})

test('urgent work runs first, in order', async (t) => {
  const works = worksAt(new Semaphore(1, 1))
  works.asks('first', 'a')
  works.asks('p1', 'a', 'patient')
  works.asks('u1', 'b')
  works.asks('u2', 'a')
  for (const name of ['first', 'u1', 'u2']) await works.end(name)
  t.same(works.begun, ['first', 'u1', 'u2', 'p1'])
})

test('failed work releases its slot', async (t) => {
  const semaphore = new Semaphore(1, 1)
  const failing = semaphore.use(() => Promise.reject(new Error('no')), 'urgent', 'a')
  await t.rejects(failing, { message: 'no' })
  t.equal(await semaphore.use(async () => 7, 'patient', 'a'), 7)
})
