import { test } from 'tap'
import { createOutput } from '../src/output.ts'
import { formatQueues } from '../src/screen/queue-table.ts'
import { formatTable } from '../src/screen/table.ts'
import { cut, widthOf } from '../src/screen/width.ts'
import { plain } from './support/rouse.ts'

test('a character counts as many columns as a terminal gives it', async (t) => {
  for (const [text, width] of [
    ['orders', 6],
    ['日本語キュー', 12],
    ['한국어', 6],
    ['🚀', 2],
    ['👩‍💻', 2],
    ['é', 1],
    ['ünïcödé', 7],
    ['–…', 2],
  ] as const) {
    t.equal(widthOf(text), width, text)
  }
  t.equal(cut('日本語キュー', 7), '日本語…')
  t.equal(cut('日本語キュー', 12), '日本語キュー')
  t.equal(cut('🚀🚀🚀', 4), '🚀…')
})

test('columns stay aligned below names of any script', async (t) => {
  const rows = ['orders', '日本語キュー', 'emoji-🚀', 'naïve'].map((name) => ({ name }))
  const lines = formatTable(rows, [
    { title: 'NAME', value: ({ name }) => name },
    { title: 'N', value: () => 'x' },
  ]).map(plain)
  t.same(new Set(lines.slice(1).map((line) => widthOf(line))), new Set([12 + 2 + 1]))
})

test('texts of others do not control the terminal', async (t) => {
  const lines: string[] = []
  t.intercept(process.stdout, 'write', {
    value: (text: string) => lines.push(text) > 0,
  })
  const text = 'a\u001b[2J\u009b31m\u202eb\nc'
  createOutput({}).fields([['error', text]])
  const [row = ''] = formatTable([text], [{ title: 'ERROR', value: (one) => one }]).slice(1)
  t.equal(plain(lines.join('')), 'error  a·[2J·31m·b\n       c\n')
  t.equal(plain(row), 'a·[2J·31m·b·c')
})

const none = { ready: 0, leased: 0, retrying: 0, scheduled: 0, dead: 0, consumers: 0, held: null }
const idle = { ...none, pushedPerSecond: 0, completedPerSecond: 0, oldestAgeMs: null, state: 'ok' }

test('one long name takes a line of its own, and the other rows stay narrow', async (t) => {
  const long = 'a-long-name-'.repeat(12)
  const names = ['orders', long, '日本語'.repeat(20)]
  const lines = formatQueues(
    names.map((queue) => ({ ...idle, queue })),
    200,
  ).map(plain)
  t.ok(lines.includes(long), 'the whole name, where it fits')
  const figures = lines.filter((line) => line.endsWith('ok'))
  t.equal(figures.length, 3)
  t.ok(figures.every((line) => widthOf(line) < 120))
  t.same(new Set(figures.map((line) => widthOf(line))).size, 1)
})

test('no line is wider than the screen', async (t) => {
  const names = ['x'.repeat(255), '日本語'.repeat(80), '👩‍💻'.repeat(30), 'a']
  for (const columns of [80, 100, 120, 200]) {
    const lines = formatQueues(
      names.map((queue) => ({ ...idle, queue, state: 'no_consumers', ready: 123_456 })),
      columns,
    )
    for (const line of lines) t.ok(widthOf(plain(line)) <= columns, `${columns}: ${plain(line)}`)
  }
})
