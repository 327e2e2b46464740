import fc from 'fast-check'
import { test } from 'tap'
import { KeyRing } from '../../src/index.ts'
import { acceptedBytesMax, bodyBytesMax, openFrame, sealFrame } from '../../src/wire/frame.ts'
import { readMessages } from '../../src/wire/message-reader.ts'
import { type Message, packMessages } from '../../src/wire/messages.ts'

const cluster = 0xcafe_babe
const ring = new KeyRing('test', ['the secret of this test'])
const origin = { cluster, sender: '\0\u00ffsender', incarnation: 7 }

const count = fc.maxSafeNat()
const name = fc.string({ unit: 'grapheme', maxLength: 20 })
const hint = fc.record({
  kind: fc.constantFrom('EVERYTHING' as const, 'MESSAGE_AVAILABLE' as const, 'SCHEDULED' as const),
  scope: name,
  count,
})
const sentHint = fc.oneof(
  hint,
  fc.record({ hint, ask: fc.nat(40) }).map((one) => ({ ...one.hint, ask: one.ask })),
)
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
const sender = bytes(8).map((eight) => Buffer.from(eight).toString('latin1'))
const message: fc.Arbitrary<Message> = fc.oneof(
  fc.record({
    type: fc.constant('hello' as const),
    isReply: fc.boolean(),
    nodeId: fc.string({ minLength: 1, maxLength: 16 }),
    token: count,
    known: count,
  }),
  fc.record({
    type: fc.constant('heartbeat' as const),
    token: count,
    echo: count,
    heldTenthMs: count,
    sinceHeardMs: fc.nat(),
    intervalMs: fc.nat(),
    countedFrom: count,
    settledBatch: count,
    batchesSent: count,
    interestVersion: count,
    interestHeld: count,
    view: count,
  }),
  fc.record({ type: fc.constant('peers' as const), addresses: fc.array(name, { maxLength: 20 }) }),
  fc.record({ type: fc.constant('leave' as const) }),
  fc.record({
    type: fc.constant('interest' as const),
    version: count,
    entries: fc.oneof(fc.constant('all' as const), bytes(16)),
  }),
  fc.record({
    type: fc.constant('hints' as const),
    batches: fc.array(fc.record({ number: count, hints: fc.array(sentHint, { maxLength: 3 }) })),
  }),
  fc.record({
    type: fc.constant('settled' as const),
    to: bytes(4),
    settled: fc.array(fc.tuple(count, count), { maxLength: 64 }).map((pairs) => pairs.flat()),
  }),
  fc.record({ type: fc.constant('stale' as const), incarnation: count, echo: count }),
  fc.record({
    type: fc.constant('vouch request' as const),
    sender,
    incarnation: count,
    token: count,
  }),
  fc.record({
    type: fc.constant('vouch' as const),
    sender,
    incarnation: count,
    sinceHeardMs: count,
    echo: count,
  }),
)

test('a sealed frame opens to the same content', async (t) => {
  fc.assert(
    fc.property(fc.array(message, { maxLength: 5 }), count, (messages, sequence) => {
      const body = packMessages(messages)
      if (body.length > bodyBytesMax) return
      const frame = openFrame(sealFrame(origin, sequence, body, ring), cluster, ring)
      if (typeof frame === 'string') throw new Error(frame)
      t.match(frame, { sender: origin.sender, incarnation: 7, sequence })
      const read = readMessages(frame.body)
      if (typeof read === 'string') throw new Error(read)
      t.same(
        read.map(({ type }) => type),
        messages.map(({ type }) => type),
      )
      t.ok(Buffer.from(packMessages(read)).equals(body))
    }),
    { numRuns: 200 },
  )
})

test('a frame with any changed bit or missing byte is refused', async (t) => {
  const sealed = sealFrame(origin, 1, packMessages([{ type: 'leave' }]), ring)
  const reasons: Record<string, number> = {}
  const refuse = (changed: Buffer) => {
    const result = openFrame(changed, cluster, ring)
    if (typeof result !== 'string') throw new Error(`accepted ${changed.toString('hex')}`)
    reasons[result] = (reasons[result] ?? 0) + 1
  }
  for (let bit = 0; bit < sealed.length * 8; bit += 1) {
    const changed = Buffer.from(sealed)
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
    refuse(changed)
  }
  for (let length = 0; length < sealed.length; length += 1) refuse(sealed.subarray(0, length))
  refuse(Buffer.concat([sealed, Buffer.alloc(1)]))
  refuse(Buffer.concat([sealed, Buffer.alloc(acceptedBytesMax)]))
  t.same(reasons, {
    magic: 16,
    version: 8,
    length: 16 + (sealed.length - 52) + 1,
    cluster: 32,
    key: 8,
    mac: (sealed.length - 2 - 1 - 2 - 4 - 1) * 8,
    size: 52 + 1,
  })
})

test('a frame of another key, cluster or secret is refused', async (t) => {
  const body = packMessages([{ type: 'leave' }])
  const sealed = sealFrame(origin, 1, body, ring)
  t.equal(openFrame(sealed, cluster + 1, ring), 'cluster')
  t.equal(openFrame(sealed, cluster, new KeyRing('test', ['some other secret'])), 'key')
  // Overwrite the key id with the right one: the signature is still wrong.
  for (const other of [
    new KeyRing('elsewhere', ['the secret of this test']),
    new KeyRing('test', []),
  ]) {
    const forged = sealFrame(origin, 1, body, other)
    forged.writeUInt8(ring.keyId, 4)
    t.equal(openFrame(forged, cluster, ring), 'mac')
  }
})

test('sealing a body that is too large throws', async (t) => {
  t.throws(() => sealFrame(origin, 1, Buffer.alloc(bodyBytesMax + 1), ring), RangeError)
  t.equal(sealFrame(origin, 1, Buffer.alloc(bodyBytesMax), ring).length, 1_200)
})
