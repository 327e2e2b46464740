/** The wall clock, for the age of messages and the clock skew of the database. */
export function nowMs(): number {
  return Date.now()
}
