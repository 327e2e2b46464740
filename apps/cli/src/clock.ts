/** The wall clock: ages of messages, and how far the database is from it. */
export function nowMs(): number {
  return Date.now()
}
