// The statements that run in a user's transaction. See executors.ts for the rules that they follow.

export interface Statement {
  readonly text: string
  readonly values: string[]
}

/** The optional parameters of `rouse.enqueue`, each with the type that its text is cast to. */
const parameters = {
  partition: 'text',
  delay: 'interval',
  run_at: 'timestamptz',
  transaction_id: 'text',
  headers: 'json',
  trace_id: 'text',
} as const

export type EnqueueValues = Readonly<Partial<Record<keyof typeof parameters, string | undefined>>>

/** Names only what is given, so that the server's defaults apply to the rest. */
export function enqueueStatement(queue: string, payload: string, given: EnqueueValues): Statement {
  const values = [queue, payload]
  const named = Object.entries(parameters).flatMap(([name, type]) => {
    const value = given[name as keyof EnqueueValues]
    if (value === undefined) return []
    values.push(value)
    return [`, ${name} => $${values.length}::text${type === 'text' ? '' : `::${type}`}`]
  })
  const text = `select rouse.enqueue($1::text, $2::text${named.join('')})::text as id`
  return { text, values }
}

/** Takes the items of a push request, in JSON. */
export function enqueueManyStatement(items: readonly string[]): Statement {
  const text = 'select e.id::text as id from rouse.enqueue_many($1::text::jsonb) e (id)'
  return { text, values: [`[${items.join(',')}]`] }
}

/** Acknowledges messages by their receipts. */
export function ackInStatement(receipts: readonly string[]): Statement {
  const text =
    'select rouse.ack_in(r.text) from pg_catalog.json_array_elements_text($1::text::json) r (text)'
  return { text, values: [JSON.stringify(receipts)] }
}
