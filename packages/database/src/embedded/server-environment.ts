/** The environment of PostgreSQL's programs: that of this process (Windows cannot start a program without
 * parts of it), without the PG* variables, which would redirect the server, and with a fixed time zone and
 * language. A given time zone also saves initdb a search through all of them. */
export function serverEnvironment(extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('PG'))
  return { ...Object.fromEntries(inherited), TZ: 'UTC', LC_ALL: 'C', ...extra }
}
