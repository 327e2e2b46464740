// SQL functions that a user calls outside of longer transactions: rouse.enqueue_many and rouse.cancel.
import fc from 'fast-check'
import { type Deed, must, pick, type Scene, settle, verb } from '../verb.ts'
import { cancel, describe, targetsOf } from './addressing.ts'
import { enqueueable, scheduledBySql } from './own-transactions.ts'
import { type Item, items, itemText, plainItem } from './producing.ts'

/** jsonb rewrites objects and numbers, but not this text. */
const payload = '"# ü"'

export const sqlCalls = [
  verb({
    name: 'enqueue many',
    weight: 3,
    args: fc.array(items, { minLength: 1, maxLength: 3 }),
    async run(scene, drawn): Promise<Deed> {
      return { did: await enqueueMany(scene, drawn), effect: 'done' }
    },
  }),
  verb({
    name: 'cancel in SQL',
    weight: 3,
    args: fc.record({ index: fc.nat(1_000) }),
    async run(scene, { index }): Promise<Deed> {
      const { world, product } = scene
      if (index % 3 > 0) await enqueueMany(scene, [{ ...plainItem, delayMs: 60_000 }])
      const targets = targetsOf(world)
      const scheduled = targets.filter(({ kind }) => kind === 'scheduled')
      const target = pick(index % 3 > 0 && scheduled.length > 0 ? scheduled : targets, index)
      if (target === undefined) return undefined
      const outcome = await product
        .sql<{ cancelled: boolean }>('select rouse.cancel($1) as cancelled', [target.id])
        .then(
          ([row]) => row?.cancelled,
          (error: Error & { code?: string }) => error.code,
        )
      const expected = target.kind === 'log' ? 'RS409' : target.kind === 'scheduled'
      must(outcome === expected, `rouse.cancel gave ${outcome} instead of ${expected}`)
      if (target.kind === 'scheduled') cancel(world, target)
      const did = `cancel in SQL ${describe(target)}: ${outcome}`
      return { did, effect: outcome === true ? 'done' : 'refused' }
    },
  }),
]

async function enqueueMany(scene: Scene, drawn: readonly Item[]): Promise<string> {
  const { world, product } = scene
  const given = drawn.map((item) => enqueueable(scene, { ...item, payload, headers: undefined }))
  const rows = await product.sql<{ id: string }>('select rouse.enqueue_many($1::jsonb) as id', [
    `[${given.map((item) => itemText(scene, item)).join(',')}]`,
  ])
  must(rows.length === given.length, `${rows.length} ids for ${given.length} messages`)
  for (const [i, { id }] of rows.entries()) {
    const item = given[i]
    if (item !== undefined) world.scheduled.push(scheduledBySql(scene, item, id))
  }
  await settle(scene)
  return `enqueue many ${JSON.stringify(given)}`
}
