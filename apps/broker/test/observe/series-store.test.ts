import { test } from 'tap'
import { add, noCounts } from '../../src/observe/queue-counts.ts'
import { compact, expand } from '../../src/observe/series/compact-count.ts'
import { mergeSeries } from '../../src/observe/series/merge-series.ts'
import { SeriesStore } from '../../src/observe/series/series-store.ts'

const minuteMs = 60_000
const startMs = 1_000_000 * minuteMs

function start() {
  const clock = { wallMs: startMs }
  const store = new SeriesStore(() => clock.wallMs)
  const count = (queue: string, pushed: number, completed = 0): void => {
    const counts = noCounts()
    add(counts, 'pushed', pushed)
    add(counts, 'completed', completed)
    store.add([[queue, counts]])
  }
  const read = (
    queue: string | undefined,
    resolution: 'second' | 'minute',
    from: number,
    to: number,
  ) => store.read({ queue, resolution, from, to })
  return { clock, store, count, read }
}

test('counts are kept by second and by minute, for queues and in total', (t) => {
  const { clock, count, read } = start()
  const second = startMs / 1_000
  count('a', 5, 1)
  clock.wallMs += 2_000
  count('a', 7)
  count('b', 1)
  clock.wallMs += minuteMs
  t.same(read('a', 'second', second, second + 3), {
    pushed: [5, 0, 7, 0],
    completed: [1, 0, 0, 0],
  })
  t.same(read(undefined, 'second', second, second + 2).pushed, [5, 0, 8])
  t.same(read('a', 'minute', second / 60, second / 60 + 1).pushed, [12, 0])
  t.same(read(undefined, 'minute', second / 60, second / 60).pushed, [13])
  t.end()
})

test('time before the start is a gap, and idle time is zeros', (t) => {
  const { clock, count, read } = start()
  const second = startMs / 1_000
  clock.wallMs += 5_000
  count('a', 1)
  t.same(read('a', 'second', second - 2, second + 1).pushed, [null, null, 0, 0])
  t.same(read('idle', 'second', second - 1, second).pushed, [null, 0])
  t.same(read(undefined, 'second', second - 1, second).pushed, [null, 0])
  t.same(read('a', 'minute', second / 60 - 1, second / 60).pushed, [null, 1])
  t.same(read(undefined, 'minute', second / 60 - 1, second / 60).pushed, [null, 1])
  t.same(read('a', 'second', second + 6, second + 6).pushed, [null], 'the future is not known')
  t.end()
})

test('what is older than an hour or a day is gone', (t) => {
  const { clock, count, read } = start()
  const second = startMs / 1_000
  count('a', 1)
  clock.wallMs += 3_600_000
  count('a', 2)
  t.same(read('a', 'second', second, second + 1).pushed, [null, 0])
  t.same(read('a', 'second', second + 3_600, second + 3_600).pushed, [2])
  clock.wallMs += 23 * 3_600_000
  count('a', 3)
  t.same(read('a', 'minute', second / 60, second / 60 + 1).pushed, [null, 0])
  t.same(read('a', 'minute', second / 60 + 1_440, second / 60 + 1_440).pushed, [3])
  t.end()
})

test('a clock that is set back loses no counts', (t) => {
  const { clock, count, read } = start()
  const second = startMs / 1_000
  clock.wallMs += 10_000
  count('a', 1)
  clock.wallMs -= 8_000
  count('a', 2)
  clock.wallMs += 20_000
  t.same(read('a', 'second', second + 10, second + 10).pushed, [3])
  t.end()
})

test('10,000 queues for a day take at most 48 MB', (t) => {
  global.gc?.()
  const before = process.memoryUsage()
  const { clock, store, count, read } = start()
  for (let minute = 0; minute < 20; minute += 1) {
    for (let i = 0; i < 10_000; i += 1) count(`queue-${i}`, 1 + (i % 700))
    clock.wallMs += 72 * minuteMs
  }
  const after = process.memoryUsage()
  t.ok(store.bytes() <= 48e6, `${store.bytes()} bytes in rows`)
  const grown = after.arrayBuffers - before.arrayBuffers
  t.ok(grown <= 48e6, `${grown} bytes in arrays`)
  t.same(
    read('queue-699', 'minute', startMs / minuteMs + 72, startMs / minuteMs + 73).pushed,
    [700, 0],
  )
  count('one too many', 1)
  t.ok(store.bytes() <= 48e6)
  const now = Math.floor(clock.wallMs / minuteMs)
  t.same(read('queue-0', 'minute', now, now).pushed, [null], 'the queue that was idle for longest')
  t.same(read('one too many', 'minute', now - 1, now).pushed, [0, 1])
  count('another', 1)
  t.same(read('another', 'minute', now - 1, now).pushed, [null, 1], 'it may have been dropped')
  t.end()
})

test('only the busiest queues are kept by second; others are a gap, not zeros', (t) => {
  const { clock, count, read } = start()
  for (let second = 0; second < 130; second += 1) {
    for (let i = 0; i < 250; i += 1) count(`queue-${i}`, i < 100 ? 1 : 50)
    clock.wallMs += 1_000
  }
  const now = Math.floor(clock.wallMs / 1_000) - 1
  const known = Array.from(
    { length: 250 },
    (_, i) => read(`queue-${i}`, 'second', now, now).pushed[0],
  )
  t.equal(known.filter((value) => value !== null).length, 100)
  t.ok(known.filter((value) => value === 50).length >= 50, 'busy queues replace idle ones')
  t.notOk(known.includes(0))
  t.end()
})

test('compact counts are exact up to 511 and off by at most 0.2 % above', (t) => {
  for (let count = 0; count <= 511; count += 1) {
    if (expand(compact(count)) !== count) t.fail(`${count}`)
  }
  for (let count = 512; count < 8_000_000; count = Math.ceil(count * 1.001)) {
    const error = Math.abs(expand(compact(count)) / count - 1)
    if (error > 0.002) t.fail(`${count}: ${error}`)
    if (compact(count) > 0xfff) t.fail(`${count} needs more than 12 bits`)
  }
  t.equal(compact(1e12), 0xfff)
  t.end()
})

test('series of nodes are added up; a step that no node knows stays a gap', (t) => {
  const [a, b] = [
    { pushed: [null, 1, 2], completed: [null, 0, 1] },
    { pushed: [null, null, 3], completed: [null, null, 4] },
  ]
  t.same(mergeSeries([a, b]), { pushed: [null, 1, 5], completed: [null, 0, 5], nodes: [0, 1, 2] })
  t.end()
})
