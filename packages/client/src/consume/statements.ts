/** Acknowledges messages by their lease ids, in the transaction that runs this statement. */
export const ackInStatement = 'select rouse.ack_in(l) from unnest($1::text[]) l'
