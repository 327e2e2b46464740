// What a client promises, whether a real node or a node in memory answers: one suite, two implementations.
import { test } from 'tap'
import { Discard, exponential, type Message, RetryIn } from '../../src/index.ts'
import { unique } from '../support/cluster.ts'
import { collect, dataOf, type OpenSubject, until } from './subject.ts'

export function runBehaviourSuite(name: string, open: OpenSubject): void {
  test(`${name}: a pushed message is delivered once, with everything that was given`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    const { id, status } = await queue.push(
      { to: 'ann' },
      { partition: 'p', dedupeKey: 'k', headers: { h: 1 }, traceId: 'trace' },
    )
    t.equal(status, 'queued')
    const [message] = await queue.pop()
    t.match(message, {
      id,
      data: { to: 'ann' },
      queue: queue.name,
      partition: 'p',
      transactionId: 'k',
      headers: { h: 1 },
      traceId: 'trace',
      attempt: 1,
    })
    await queue.ack(message as Message)
    t.same(await queue.pop(), [])
    await t.rejects(queue.ack(message as Message), { code: 'lease_lost' })
  })

  test(`${name}: messages of a partition come in order, one lease at a time`, async (t) => {
    const { rouse } = await open(t)
    const queue = rouse.queue(unique())
    for (const n of [1, 2, 3]) await queue.push(n, { partition: 'a' })
    await queue.push(4, { partition: 'b' })
    const first = await queue.pop({ batch: 2, partition: 'a' })
    t.same(dataOf(first), [1, 2])
    t.same(dataOf(await queue.pop({ partition: 'a' })), [], 'the partition is leased')
    t.same(dataOf(await queue.pop({ partition: 'b' })), [4])
    await queue.ack(first)
    t.same(dataOf(await queue.pop({ partition: 'a' })), [3])
  })

  test(`${name}: messages without a partition are independent of each other`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    await queue.configure({ retry: { backoff: '1h' } })
    for (const n of [1, 2, 3]) await queue.push(n)
    const [first] = await queue.pop()
    t.match(first, { data: 1, partition: null })
    await queue.fail(first as Message, new Error('no'))
    const [second] = await queue.pop()
    t.same(dataOf(await queue.pop()), [3], 'although another one is leased')
    t.match(second, { data: 2 })
  })

  test(`${name}: an unordered queue leases messages of a partition to several consumers`, async (t) => {
    const { rouse } = await open(t)
    const queue = rouse.queue(unique())
    await queue.configure({ ordering: 'none' })
    await queue.pushMany([{ payload: 1 }, { payload: 2 }])
    t.same(dataOf(await queue.pop()), [1])
    t.same(dataOf(await queue.pop()), [2])
  })

  test(`${name}: a second push with the same key is a duplicate with the id of the first`, async (t) => {
    const { rouse } = await open(t)
    const queue = rouse.queue(unique())
    const first = await queue.push(1, { dedupeKey: 'k' })
    const second = await queue.push(2, { dedupeKey: 'k' })
    t.match(second, { id: first.id, status: 'duplicate' })
    t.same(dataOf(await queue.pop({ batch: 9 })), [1])
  })

  test(`${name}: a delayed message is delivered when it is due, not before`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    t.match(await queue.push('later', { delay: '400ms' }), { status: 'scheduled' })
    t.same(await queue.pop(), [])
    let seen: Message | undefined
    queue.work(async (message) => {
      seen = message
    })
    await until(subject, () => seen !== undefined)
    t.equal(seen?.data, 'later')
  })

  test(`${name}: a failed message is retried with the queue's delays, then becomes a dead letter`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    await queue.configure({ retry: { limit: 2, backoff: ['50ms', '100ms'] } })
    const { id } = await queue.push('poison')
    const attempts: number[] = []
    const errors: unknown[] = []
    queue.work({ onError: (error) => errors.push(error) }, async (message) => {
      attempts.push(message.attempt)
      throw new Error('card 42 declined')
    })
    let letters: unknown[] = []
    while (letters.length === 0) {
      await subject.pass(50)
      letters = await collect(subject.rouse.deadLetters.list({ queue: queue.name }))
    }
    t.same(attempts, [1, 2, 3])
    t.equal(errors.length, 3)
    t.match(letters, [
      {
        id,
        data: 'poison',
        errorCode: 'card * declined',
        errorMessage: 'card 42 declined',
        attempts: 3,
      },
    ])
  })

  test(`${name}: delays between retries may grow`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    await queue.configure({ retry: { limit: 2, backoff: exponential('40ms', { max: '60ms' }) } })
    await queue.push(1)
    const attempts: number[] = []
    queue.work({ onError: () => {} }, async (message) => {
      attempts.push(message.attempt)
      throw new Error('no')
    })
    await until(subject, () => attempts.length === 3)
    t.same(attempts, [1, 2, 3])
  })

  test(`${name}: RetryIn charges the attempt and sets the delay; Discard makes a dead letter`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    await queue.configure({ retry: { limit: 5, backoff: '1h' } })
    await queue.push('again', { partition: 'a' })
    await queue.push('gone', { partition: 'b' })
    const seen: string[] = []
    const errors: unknown[] = []
    const worker = queue.work({ onError: (error) => errors.push(error) }, async (message) => {
      seen.push(`${message.data} ${message.attempt}`)
      if (message.data === 'gone') throw new Discard('no such user')
      if (message.attempt === 1) throw new RetryIn('30ms', { cause: new Error('busy') })
    })
    await until(subject, () => seen.includes('again 2'))
    await worker.stop()
    t.same(seen.toSorted(), ['again 1', 'again 2', 'gone 1'])
    t.same(errors, [], 'neither is an error')
    t.match(await subject.rouse.deadLetters.errors({ queue: queue.name }), [
      { errorCode: 'discarded', errorMessage: 'no such user', count: 1 },
    ])
  })

  test(`${name}: snooze delivers again without charging the attempt`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    await queue.push(1)
    const attempts: number[] = []
    queue.work(async (message, context) => {
      attempts.push(message.attempt)
      if (attempts.length < 3) await context.snooze('20ms')
    })
    await until(subject, () => attempts.length === 3)
    t.same(attempts, [1, 1, 1])
  })

  test(`${name}: a failed message holds its partition back, and no other`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    await queue.configure({ retry: { backoff: '200ms' } })
    for (const data of ['a1', 'a2']) await queue.push(data, { partition: 'a' })
    await queue.push('b1', { partition: 'b' })
    const done: unknown[] = []
    queue.work({ onError: () => {} }, async (message) => {
      if (message.data === 'a1' && message.attempt === 1) throw new Error('once')
      done.push(message.data)
    })
    await until(subject, () => done.length === 3)
    t.same(done, ['b1', 'a1', 'a2'])
  })

  test(`${name}: acknowledging and pushing is one step`, async (t) => {
    const subject = await open(t)
    const [orders, invoices] = [subject.rouse.queue(unique()), subject.rouse.queue(unique())]
    await orders.push(7)
    orders.work(async (message, context) => {
      await context.ack({ push: [{ queue: invoices.name, payload: { order: message.data } }] })
    })
    const seen: unknown[] = []
    invoices.work(async (message) => void seen.push(message.data))
    await until(subject, () => seen.length === 1)
    t.same(seen, [{ order: 7 }])
  })

  test(`${name}: every group gets every message; a new named group begins with new ones`, async (t) => {
    const { rouse } = await open(t)
    const queue = rouse.queue(unique())
    await queue.push('old')
    t.same(await queue.group('late').pop(), [])
    t.same(dataOf(await queue.group('early').pop({ from: 'all', autoAck: true })), ['old'])
    await queue.push('new')
    t.same(dataOf(await queue.group('late').pop({ batch: 9 })), ['new'])
    t.same(dataOf(await queue.group('early').pop({ batch: 9 })), ['new'])
    t.same(dataOf(await queue.pop({ batch: 9 })), ['old', 'new'], 'the default group gets all')
  })

  test(`${name}: a worker of a named group waits for a queue that does not exist yet`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    const seen: unknown[] = []
    queue.group('mailer').work(async (message) => void seen.push(message.data))
    await subject.pass(300)
    await queue.push('first')
    await until(subject, () => seen.length === 1)
    t.same(seen, ['first'])
  })

  test(`${name}: a lease that is not renewed expires, and the attempt is charged`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    await queue.configure({ retry: { backoff: 0 } })
    await queue.push(1)
    const [first] = await queue.pop({ lease: '1s' })
    await subject.pass(1_300)
    const again: Message[] = []
    while (again.length === 0) {
      again.push(...(await queue.pop()))
      await subject.pass(20)
    }
    t.match(again, [{ data: 1, attempt: 2 }])
    await t.rejects(queue.ack(first as Message), { code: 'lease_lost' })
  })

  test(`${name}: a redrive delivers dead letters again, with attempts from the start`, async (t) => {
    const subject = await open(t)
    const { rouse } = subject
    const queue = rouse.queue(unique())
    await queue.push('x')
    const [message] = await queue.pop()
    await queue.deadLetter(message as Message, 'bad')
    t.equal(await rouse.deadLetters.countRedrive({ queue: queue.name, errorCode: 'other' }), 0)
    t.equal(await rouse.deadLetters.countRedrive({ queue: queue.name }), 1)
    t.match(await rouse.deadLetters.get(message?.id ?? ''), [{ errorMessage: 'bad' }])
    t.match(await rouse.deadLetters.redrive({ queue: queue.name }), { total: 1 })
    const again: Message[] = []
    while (again.length === 0) {
      again.push(...(await queue.pop()))
      await subject.pass(20)
    }
    t.match(again, [{ data: 'x', attempt: 1 }])
    t.same(await collect(rouse.deadLetters.list({ queue: queue.name })), [])
  })

  test(`${name}: a paused queue delivers nothing until it is resumed`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    await queue.push(1)
    await queue.pause()
    t.match(await queue.info(), { paused: true, state: 'paused', ready: 1 })
    await t.rejects(queue.pop(), { code: 'queue_paused', status: 423 })
    await queue.resume()
    t.same(dataOf(await queue.pop()), [1])
    await queue.delete()
    await t.rejects(queue.info(), { code: 'not_found', status: 404 })
  })

  test(`${name}: schedules are stored, listed and deleted`, async (t) => {
    const { rouse } = await open(t)
    const queue = unique()
    const name = unique('nightly')
    const settings = { queue, cron: '0 3 * * *', timeZone: 'Europe/Berlin', payload: { n: 1 } }
    t.match(await rouse.schedules.upsert(name, settings), { ...settings, name, paused: false })
    t.match(await rouse.schedules.get(name), settings)
    const all = await collect(rouse.schedules.list())
    t.ok(all.some((schedule) => schedule.name === name))
    await rouse.schedules.delete(name)
    await t.rejects(rouse.schedules.get(name), { code: 'not_found' })
  })

  test(`${name}: groups are shown, moved and deleted`, async (t) => {
    const { rouse } = await open(t)
    const queue = rouse.queue(unique())
    const group = queue.group('audit')
    await queue.configure({})
    await group.pop()
    await queue.push(1)
    t.match(await rouse.groups.get('audit', queue.name), { consumerGroup: 'audit', ready: 1 })
    await rouse.groups.seek('audit', queue.name, 'end')
    t.same(await group.pop(), [])
    await rouse.groups.delete('audit', queue.name)
    await t.rejects(rouse.groups.get('audit', queue.name), { code: 'not_found' })
  })

  test(`${name}: events report how each message ended`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    await queue.configure({ retry: { limit: 0 } })
    await queue.push('good', { partition: 'a' })
    await queue.push('bad', { partition: 'b' })
    const events: string[] = []
    const worker = queue.work({ onError: () => {} }, async (message) => {
      if (message.data === 'bad') throw new Error('no')
    })
    worker.on('active', ({ message }) => events.push(`active ${String(message.data)}`))
    worker.on('completed', ({ message }) => events.push(`completed ${String(message.data)}`))
    worker.on('failed', ({ message, error }) =>
      events.push(`failed ${String(message.data)}: ${String(error)}`),
    )
    worker.on('error', ({ about }) => events.push(`error of a ${about.kind}`))
    worker.on('stopped', () => events.push('stopped'))
    await until(subject, () => events.length >= 5)
    await worker.stop()
    t.equal(events.pop(), 'stopped')
    t.same(events.toSorted(), [
      'active bad',
      'active good',
      'completed good',
      'error of a handler',
      'failed bad: Error: no',
    ])
  })
}
