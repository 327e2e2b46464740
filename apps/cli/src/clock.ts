/** The wall clock, for the age of messages and the clock skew of the database. */
export function wallMs(): number {
  return Date.now()
}
