// The columns that a text takes on a terminal. East Asian characters and emoji take two, combining marks none.

const isAscii = /^[\x20-\x7e]*$/
const isWide =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u
const isInvisible = /^[\p{M}\p{Cf}]+$/u

const characters = new Intl.Segmenter('en', { granularity: 'grapheme' })

export function widthOf(text: string): number {
  if (isAscii.test(text)) return text.length
  let width = 0
  for (const { segment } of characters.segment(text)) width += columnsOf(segment)
  return width
}

/** Shortens a text that is too wide, and ends it with `…`. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  if (isAscii.test(text)) return `${text.slice(0, Math.max(0, width - 1))}…`
  let kept = ''
  let room = width - 1
  for (const { segment } of characters.segment(text)) {
    room -= columnsOf(segment)
    if (room < 0) break
    kept += segment
  }
  return `${kept}…`
}

export function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)))
}

export function padStart(text: string, width: number): string {
  return ' '.repeat(Math.max(0, width - widthOf(text))) + text
}

function columnsOf(character: string): number {
  if (isInvisible.test(character)) return 0
  return isWide.test(character) ? 2 : 1
}
