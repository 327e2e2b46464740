/** The time of the browser, in milliseconds. */
export function nowMs(): number {
  return Date.now()
}
