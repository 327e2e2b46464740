// Tests code that pushes and consumes, without a server and without waiting: `testRouse()` is the client with a node
// in memory, whose clock the test sets forward.
import assert from 'node:assert/strict'
import type { Rouse } from '@rouse/client'
import { testRouse } from '@rouse/client/testing'

interface Queues {
  reminders: { user: string }
  mails: { to: string; text: string }
}

// The code under test.
async function signUp(rouse: Rouse<Queues>, user: string): Promise<void> {
  await rouse.queue('reminders').push({ user }, { delay: '1d', unique: { key: user } })
}

function startReminders(rouse: Rouse<Queues>): void {
  rouse.queue('reminders').work(async ({ data }, context) => {
    const text = 'we miss you'
    await context.ack({ push: [{ queue: 'mails', payload: { to: data.user, text }, priority: 3 }] })
  })
}

// The test.
await using rouse = testRouse<Queues>()
startReminders(rouse)
await signUp(rouse, 'ann')
await signUp(rouse, 'ann')
assert.equal(rouse.pushed('reminders').length, 1) // the second one had the same key
await rouse.advance('23h')
assert.deepEqual(rouse.pushed('mails'), [])
await rouse.advance('1h')
assert.deepEqual(rouse.pushed('mails')[0]?.data, { to: 'ann', text: 'we miss you' })
console.log('reminded ann after a day')
