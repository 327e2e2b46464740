import { test } from 'tap'
import { sharedReads } from '../../src/encryption/encrypted-queue-cache.ts'

/** Reads that end when the test ends them. */
function manual() {
  const ends: { resolve: () => void; reject: (error: Error) => void }[] = []
  let underWay = 0
  let most = 0
  const read = sharedReads(async () => {
    underWay += 1
    most = Math.max(most, underWay)
    try {
      await new Promise<void>((resolve, reject) => ends.push({ resolve, reject }))
    } finally {
      underWay -= 1
    }
  })
  return {
    read,
    begun: () => ends.length,
    end: (i: number) => ends[i]?.resolve(),
    ends,
    most: () => most,
  }
}

test('the read of a single caller starts at once', async (t) => {
  const { read, begun, end } = manual()
  const first = read()
  t.equal(begun(), 1)
  end(0)
  await first
  const second = read()
  t.equal(begun(), 2)
  end(1)
  await second
})

test('callers that come during a read share the next one', async (t) => {
  const { read, begun, end, most } = manual()
  const early = read()
  let isAnswered = false
  const late = [read(), read(), read()].map((one) =>
    one.then(() => {
      isAnswered = true
    }),
  )
  t.equal(begun(), 1, 'one at a time')
  end(0)
  await early
  t.equal(begun(), 2, 'one more for all of them')
  t.equal(isAnswered, false)
  end(1)
  await Promise.all(late)
  t.equal(begun(), 2)
  t.equal(most(), 1)
})

test('a caller between two reads also shares the next one', async (t) => {
  const { read, begun, end, most } = manual()
  const asked: Promise<void>[] = []
  const early = read()
  // These calls come in the few microtasks between the first read and the second.
  const turns = early.then(() => asked.push(read())).then(() => asked.push(read()))
  asked.push(read())
  end(0)
  await turns
  end(1)
  await asked[0]
  for (let i = 2; i < begun(); i += 1) end(i)
  await Promise.all(asked)
  t.ok(begun() <= 3, `${begun()} reads for four callers`)
  t.equal(most(), 1)
})

test('a failed read rejects its callers, and the next read starts', async (t) => {
  const { read, begun, end, ends } = manual()
  const [failing, next] = [read(), read()]
  ends[0]?.reject(new Error('no database'))
  await t.rejects(failing, { message: 'no database' })
  t.equal(begun(), 2)
  end(1)
  await next
})
