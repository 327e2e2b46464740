// The ticks of schedules, without a database: patterns, changes of clocks in time zones, and missed ticks.

import type { CatchUp } from '@rouse/storage'
import { test } from 'tap'
import { checkPattern, dueTicks, nextTick, ticksMax } from '../../src/scheduler/cron-ticks.ts'

function ticks(cron: string, timeZone: string, after: string, count: number): string[] {
  const found: string[] = []
  let at: Date | undefined = new Date(after)
  while (found.length < count) {
    at = nextTick({ cron, timeZone }, at)
    if (at === undefined) break
    found.push(at.toISOString())
  }
  return found
}

function due(catchUp: CatchUp, cron: string, nextAt: string, now: string) {
  const { fire, next } = dueTicks(
    { cron, timeZone: 'UTC', catchUp, nextAt: new Date(nextAt) },
    new Date(now),
  )
  return { fire: fire.map((tick) => tick.toISOString()), next: next?.toISOString() }
}

test('a pattern of five fields has minutes, one of six has seconds', async (t) => {
  t.same(ticks('*/20 * * * *', 'UTC', '2030-01-01T00:00:30Z', 2), [
    '2030-01-01T00:20:00.000Z',
    '2030-01-01T00:40:00.000Z',
  ])
  t.same(ticks('*/20 * * * * *', 'UTC', '2030-01-01T00:00:30.500Z', 2), [
    '2030-01-01T00:00:40.000Z',
    '2030-01-01T00:01:00.000Z',
  ])
})

test('the next tick is after the given time, even if that is a tick', async (t) => {
  t.same(ticks('0 0 * * *', 'UTC', '2030-01-01T00:00:00Z', 1), ['2030-01-02T00:00:00.000Z'])
})

test('noon is noon in the time zone, in summer and in winter', async (t) => {
  t.same(ticks('0 12 * * *', 'America/New_York', '2026-03-07T00:00:00Z', 2), [
    '2026-03-07T17:00:00.000Z',
    '2026-03-08T16:00:00.000Z',
  ])
})

test('a daily tick within the hour that clocks skip comes once, after that hour', async (t) => {
  t.same(ticks('30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', 2), [
    '2026-03-29T01:30:00.000Z', // 03:30 in summer time
    '2026-03-30T00:30:00.000Z',
  ])
})

test('a daily tick within the hour that clocks repeat comes once', async (t) => {
  t.same(ticks('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z', 2), [
    '2026-10-25T00:30:00.000Z', // the first 02:30
    '2026-10-26T01:30:00.000Z',
  ])
})

test('in the second of the repeated hours the next daily tick is on the next day', async (t) => {
  t.same(ticks('30 2 * * *', 'Europe/Berlin', '2026-10-25T01:10:00Z', 1), [
    '2026-10-26T01:30:00.000Z',
  ])
})

test('ticks of every half hour come in both of the repeated hours', async (t) => {
  t.same(ticks('*/30 * * * *', 'Europe/Berlin', '2026-10-24T23:45:00Z', 6), [
    '2026-10-25T00:00:00.000Z',
    '2026-10-25T00:30:00.000Z',
    '2026-10-25T01:00:00.000Z',
    '2026-10-25T01:30:00.000Z',
    '2026-10-25T02:00:00.000Z',
    '2026-10-25T02:30:00.000Z',
  ])
  t.same(ticks('@hourly', 'America/New_York', '2026-11-01T04:30:00Z', 3), [
    '2026-11-01T05:00:00.000Z',
    '2026-11-01T06:00:00.000Z',
    '2026-11-01T07:00:00.000Z',
  ])
})

test('hourly ticks are an hour apart, in every time zone', async (t) => {
  // Lord Howe Island changes its clocks by half an hour, so ticks around the change are half an hour nearer
  // or farther.
  const hours = [3_600_000]
  const halves = [1_800_000, 3_600_000, 5_400_000]
  for (const [timeZone, begin, wanted] of [
    ['Europe/Berlin', '2026-03-26T00:00:00Z', hours],
    ['Europe/Berlin', '2026-10-22T00:00:00Z', hours],
    ['America/New_York', '2026-03-05T00:00:00Z', hours],
    ['America/New_York', '2026-10-29T00:00:00Z', hours],
    ['Australia/Lord_Howe', '2026-04-02T00:00:00Z', halves],
    ['Australia/Lord_Howe', '2026-10-01T00:00:00Z', halves],
  ] as const) {
    const found = ticks('0 * * * *', timeZone, begin, 24 * 7)
    const gaps = new Set(found.slice(1).map((at, i) => Date.parse(at) - Date.parse(found[i] ?? '')))
    t.ok(
      [...gaps].every((gap) => wanted.includes(gap)),
      `${timeZone}: ${[...gaps].join()}`,
    )
  }
})

test('the next tick is always later, at every hour around a change of clocks', async (t) => {
  const patterns = ['30 2 * * *', '*/20 1-3 * * *', '15 */2 * * *', '*/15 * * * *', '0 2 * * SUN']
  for (const cron of patterns) {
    for (const begin of ['2026-03-29T00:00:00Z', '2026-10-25T00:00:00Z']) {
      for (let minutes = 0; minutes < 300; minutes += 5) {
        const after = new Date(Date.parse(begin) + minutes * 60_000)
        const next = nextTick({ cron, timeZone: 'Europe/Berlin' }, after)
        if (next === undefined || next <= after) t.fail(`${cron} after ${after.toISOString()}`)
      }
    }
  }
  t.pass('always later')
})

test('an invalid pattern is refused with a reason', async (t) => {
  for (const cron of [
    '',
    '* * *',
    '60 * * * *',
    'a b c d e',
    '2030-01-01T00:00:00',
    '* * * * * * *',
  ]) {
    t.throws(() => checkPattern(cron), TypeError, cron)
  }
  t.doesNotThrow(() => checkPattern('0 9 * * MON-FRI'))
})

test('a pattern that matches no day has no next tick', async (t) => {
  t.equal(nextTick({ cron: '0 0 30 2 *', timeZone: 'UTC' }, new Date('2030-01-01')), undefined)
})

test('a tick that is on time fires under every catchUp policy', async (t) => {
  for (const policy of ['none', 'last', 'all'] as const) {
    t.same(due(policy, '0 * * * *', '2030-01-01T01:00:00Z', '2030-01-01T01:00:02Z'), {
      fire: ['2030-01-01T01:00:00.000Z'],
      next: '2030-01-01T02:00:00.000Z',
    })
  }
})

test('catchUp fires none, the last or all of the missed ticks', async (t) => {
  const [from, now] = ['2030-01-01T01:00:00Z', '2030-01-01T05:30:00Z']
  const next = '2030-01-01T06:00:00.000Z'
  t.same(due('none', '0 * * * *', from, now), { fire: [], next })
  t.same(due('last', '0 * * * *', from, now), { fire: ['2030-01-01T05:00:00.000Z'], next })
  t.same(due('all', '0 * * * *', from, now), {
    fire: [1, 2, 3, 4, 5].map((hour) => `2030-01-01T0${hour}:00:00.000Z`),
    next,
  })
})

test('the last tick fires once, under none and last, if it is on time', async (t) => {
  const [from, now] = ['2030-01-01T01:00:00Z', '2030-01-01T05:00:01Z']
  for (const policy of ['none', 'last'] as const) {
    t.same(due(policy, '0 * * * *', from, now).fire, ['2030-01-01T05:00:00.000Z'], policy)
  }
})

test('the last missed tick of a year is found without visiting every tick', async (t) => {
  const begun = performance.now()
  const { fire } = due('last', '* * * * * *', '2030-01-01T00:00:00Z', '2031-01-01T00:00:00Z')
  t.ok(fire.length <= 6, `${fire.length} ticks within the grace`)
  const rare = due('last', '0 0 29 2 *', '2028-02-29T00:00:00Z', '2031-01-01T00:00:00Z')
  t.same(rare.fire, ['2028-02-29T00:00:00.000Z'])
  t.ok(performance.now() - begun < 1_000)
})

test('many missed ticks are caught up in portions', async (t) => {
  const first = due('all', '* * * * * *', '2030-01-01T00:00:00Z', '2030-01-01T01:00:00Z')
  t.equal(first.fire.length, ticksMax)
  t.equal(first.next, new Date(Date.parse('2030-01-01T00:00:00Z') + ticksMax * 1_000).toISOString())
})
