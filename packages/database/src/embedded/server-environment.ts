/** The environment of PostgreSQL's programs. It starts with the environment of this process, because Windows
 * cannot start a program without some of the variables. PG* variables are removed, because they would
 * redirect the server. The language and the time zone are fixed; with a fixed time zone, initdb does not
 * search through all time zones. */
export function serverEnvironment(extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('PG'))
  return { ...Object.fromEntries(inherited), TZ: 'UTC', LC_ALL: 'C', ...extra }
}
