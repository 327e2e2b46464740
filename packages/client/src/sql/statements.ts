// The statements that run in a user's transaction. See executors.ts for the rules that they follow.

export interface Statement {
  readonly text: string
  readonly values: string[]
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
