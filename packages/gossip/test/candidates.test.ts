import { test } from 'tap'
import { Candidates, candidatesMax } from '../src/candidates.ts'
import { presets } from '../src/index.ts'

const nobody = () => false

function addresses(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, i) => `10.0.0.1:${from + i + 1}`)
}

test('an address is tried as long as one source lists it', async (t) => {
  const candidates = new Candidates(presets.lan)
  candidates.replace('database', ['a:1', 'b:1'], 0)
  candidates.replace('static', ['b:1'], 0)
  candidates.replace('database', [], 0)
  t.same(candidates.take(0, nobody), ['b:1'])
  candidates.replace('static', [], 0)
  t.equal(candidates.size, 0)
})

test('an address that a peer told of is given up in the end, a listed one never', async (t) => {
  const candidates = new Candidates(presets.lan)
  candidates.learn('learned:1', 0)
  candidates.replace('database', ['listed:1'], 0)
  candidates.take(1_000_000, nobody)
  t.equal(candidates.size, 1)
  t.same(candidates.take(2_000_000, nobody), ['listed:1'])
})

test('a full list has room again for what a source lists in place of others', async (t) => {
  const candidates = new Candidates(presets.lan)
  candidates.replace('database', addresses(candidatesMax), 0)
  candidates.replace('static', ['late:1'], 0)
  t.equal(candidates.size, candidatesMax, 'no more than so many')
  candidates.replace('database', addresses(10, 30_000), 0)
  t.equal(candidates.size, 10, 'an address that found no room is not remembered')
  candidates.replace('static', ['late:1'], 0)
  t.equal(candidates.size, 11)
})
