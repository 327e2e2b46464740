import type pg from 'pg'
import { callStatement } from '../call.ts'

export async function encryptedQueues(pool: pg.Pool): Promise<string[]> {
  const rows = await callStatement(pool, 'select name from rouse.queues where encryption')
  return rows.map(([name]) => name as string)
}
