// Log entries for people: one line with the time, the level, the process, the message and its fields.

const colours: Readonly<Record<string, number>> = {
  warn: 33,
  error: 31,
  fatal: 31,
  debug: 90,
  trace: 90,
}
const shownElsewhere = new Set(['level', 'time', 'node', 'process', 'pid', 'msg', 'err'])

/** `line`: an entry as JSON. A line that is not JSON is returned unchanged. */
export function readableLine(line: string): string {
  let entry: Readonly<Record<string, unknown>>
  try {
    entry = JSON.parse(line) as Readonly<Record<string, unknown>>
  } catch {
    return line
  }
  const level = String(entry.level)
  const fields = Object.entries(entry)
    .filter(([name]) => !shownElsewhere.has(name))
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const head = `${String(entry.time).slice(11, 23)} ${level.toUpperCase().padEnd(5)} ${String(entry.node)} ${String(entry.process)}:`
  const { stack, message } = (entry.err ?? {}) as { stack?: unknown; message?: unknown }
  const error = stack ?? message
  const text = [coloured(clean(head), level), ...[entry.msg, ...fields].map(clean)].join(' ')
  return `${text}${error === undefined ? '' : `\n${clean(error)}`}\n`
}

function coloured(text: string, level: string): string {
  const colour = colours[level]
  return colour === undefined ? text : `\u001b[${colour}m${text}\u001b[0m`
}

/** Texts of others must not control the terminal, or look like another entry: further lines are indented. */
function clean(value: unknown): string {
  return String(value)
    .replaceAll(/(?!\n)[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, '')
    .replaceAll(/\n(?! )/g, '\n  ')
}
