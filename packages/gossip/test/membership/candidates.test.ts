import { test } from 'tap'
import { presets } from '../../src/index.ts'
import { Candidates, candidatesMax, overheardMax } from '../../src/membership/candidates.ts'

const noMember = () => false

function addresses(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, i) => `10.0.0.1:${from + i + 1}`)
}

test('an address is tried as long as one source lists it', async (t) => {
  const candidates = new Candidates(presets.lan)
  candidates.replace('database', ['a:1', 'b:1'], 0)
  candidates.replace('static', ['b:1'], 0)
  candidates.replace('database', [], 0)
  t.same(candidates.take(0, noMember), ['b:1'])
  candidates.replace('static', [], 0)
  t.equal(candidates.size, 0)
})

test('an address that a peer reported expires, a listed one never does', async (t) => {
  const candidates = new Candidates(presets.lan)
  candidates.learn('learned:1', 0)
  candidates.replace('database', ['listed:1'], 0)
  candidates.take(1_000_000, noMember)
  t.equal(candidates.size, 1)
  t.same(candidates.take(2_000_000, noMember), ['listed:1'])
})

test('an address that is known only from a datagram gets a few hellos and is forgotten', async (t) => {
  const candidates = new Candidates(presets.lan)
  let greetings = 0
  candidates.heardStranger('6.6.6.6:1', 0)
  for (let now = 0; now < 600_000; now += 10) greetings += candidates.take(now, noMember).length
  t.ok(greetings >= 3 && greetings <= 5, `${greetings} greetings`)
  t.equal(candidates.size, 0)
})

test('addresses known only from datagrams take a bounded part of the space', async (t) => {
  const candidates = new Candidates(presets.lan)
  for (const address of addresses(candidatesMax)) candidates.heardStranger(address, 0)
  t.equal(candidates.size, overheardMax)
  candidates.learn('told:1', 0)
  t.equal(candidates.size, overheardMax + 1)
  candidates.take(3_000, noMember)
  t.equal(candidates.size, 1)
  candidates.heardStranger('10.0.0.1:1', 3_000)
  t.same(candidates.take(3_000, noMember), ['10.0.0.1:1'], 'there is room again')
})

test('an address that is overheard and then reported by a peer stays', async (t) => {
  const candidates = new Candidates(presets.lan)
  for (const address of addresses(overheardMax)) candidates.overhear(address, 0)
  for (const address of addresses(overheardMax)) candidates.learn(address, 0)
  candidates.overhear('one-more:1', 0)
  t.equal(candidates.size, overheardMax + 1)
  candidates.take(3_000, noMember)
  t.equal(candidates.size, overheardMax)
})

test('an unknown node at a listed address soon gets a hello, even if another member is believed there', async (t) => {
  const candidates = new Candidates(presets.lan)
  const everybody = () => true
  candidates.replace('database', ['a:1'], 0)
  t.same(candidates.take(0, everybody), [])
  candidates.heardStranger('a:1', 1_000)
  t.same(candidates.take(1_000 + presets.lan.helloFirstMs, everybody), ['a:1'])
  candidates.take(10_000, everybody)
  t.equal(candidates.size, 1)
})

test('a listed address replaces one that was only reported or overheard', async (t) => {
  const candidates = new Candidates(presets.lan)
  for (const address of addresses(candidatesMax - 10)) candidates.learn(address, 0)
  for (const address of addresses(100, 30_000)) candidates.overhear(address, 0)
  t.equal(candidates.size, candidatesMax)
  const listed = addresses(20, 50_000)
  candidates.replace('database', listed, 0)
  t.equal(candidates.size, candidatesMax)
  const greeted = new Set<string>()
  for (let now = 0; now < 2_000; now += 5) {
    for (const address of candidates.take(now, noMember)) greeted.add(address)
  }
  t.ok(listed.every((address) => greeted.has(address)))
  candidates.replace('static', addresses(candidatesMax, 60_000), 0)
  t.equal(candidates.size, candidatesMax, 'the limit holds')
})

test('an address is tried again when its owner falls silent, and rests when its owner leaves', async (t) => {
  const candidates = new Candidates(presets.lan)
  const { helloFirstMs, helloMaxMs } = presets.lan
  candidates.replace('database', ['a:1', 'b:1'], 0)
  for (const address of ['a:1', 'b:1']) candidates.answered(address, 'owner')
  t.same(
    candidates.take(0, () => true),
    [],
  )
  candidates.retry('owner', 'a:1', 1_000)
  t.same(candidates.take(1_000, noMember), [])
  t.same(candidates.take(1_000 + helloFirstMs, noMember), ['a:1', 'b:1'])
  candidates.retry('owner', 'a:1', 2_000)
  candidates.rest('owner', 2_000)
  t.same(candidates.take(1_999 + helloMaxMs, noMember), [])
  t.same(candidates.take(2_000 + helloMaxMs, noMember), ['a:1', 'b:1'])
})

test('a full list has room again when a source replaces its addresses', async (t) => {
  const candidates = new Candidates(presets.lan)
  candidates.replace('database', addresses(candidatesMax), 0)
  candidates.replace('static', ['late:1'], 0)
  t.equal(candidates.size, candidatesMax, 'the limit holds')
  candidates.replace('database', addresses(10, 30_000), 0)
  t.equal(candidates.size, 10, 'an address that found no room is not remembered')
  candidates.replace('static', ['late:1'], 0)
  t.equal(candidates.size, 11)
})
