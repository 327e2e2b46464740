/** The environment of PostgreSQL's programs. It is the environment of this process, because Windows cannot
 * start a program without parts of it. PG* variables are removed, because they would redirect the server. The
 * language and the time zone are fixed; a fixed time zone also saves initdb a search through all of them. */
export function serverEnvironment(extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('PG'))
  return { ...Object.fromEntries(inherited), TZ: 'UTC', LC_ALL: 'C', ...extra }
}
