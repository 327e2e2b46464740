import { test } from 'tap'
import { createOutbox } from '../src/ipc.ts'

/** An outbox whose ticks and sends are controlled by the test. */
function manual(messagesMax = 100) {
  const sent: string[][] = []
  const flushes: (() => void)[] = []
  const dones: ((error: Error | null) => void)[] = []
  const outbox = createOutbox<string>({
    send: (batch, done) => {
      sent.push([...batch])
      dones.push(done)
    },
    schedule: (flush) => void flushes.push(flush),
    droppable: (message) => message.startsWith('hint'),
    dropped: 'hints lost',
    messagesMax,
  })
  return { outbox, sent, tick: () => flushes.shift()?.(), finish: () => dones.shift()?.(null) }
}

test('the messages of one tick leave in one send', async (t) => {
  const { outbox, sent, tick } = manual()
  outbox.post('a')
  outbox.post('b')
  t.same(sent, [])
  tick()
  t.same(sent, [['a', 'b']])
})

test('messages that arrive during a send wait for it and leave together', async (t) => {
  const { outbox, sent, tick, finish } = manual()
  outbox.post('a')
  tick()
  outbox.post('b')
  outbox.post('c')
  t.same(sent, [['a']])
  finish()
  t.same(sent, [['a'], ['b', 'c']])
})

test('a full outbox drops hints, reports it, and keeps all other messages', async (t) => {
  const { outbox, sent, tick } = manual(2)
  for (const message of ['a', 'b', 'hint', 'hint', 'c']) outbox.post(message)
  tick()
  t.same(sent, [['a', 'b', 'c', 'hints lost']])
})
