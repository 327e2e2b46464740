/** Quotes a word for a POSIX shell, if it needs quotes. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

/** A command line that can be pasted into a shell. */
export function shellLine(...words: readonly string[]): string {
  return words.map(shellWord).join(' ')
}
