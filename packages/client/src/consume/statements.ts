/** Acknowledges messages by their receipts, in the transaction that runs this statement. */
export const ackInStatement = 'select rouse.ack_in(r) from unnest($1::text[]) r'
