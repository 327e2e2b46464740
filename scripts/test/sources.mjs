// Names the lines of the sources where the report of a failed file names lines of the test bundle. The map is
// read only then; a test process starts faster without it.
import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { root } from '../run.mjs'

/** As in stacks, and as in the field `at` of tap. */
const inStack = /[^\s(]*rouse-tests\/\w+\/tests\.cjs:(\d+):(\d+)/g
const inField =
  /(fileName: )\S*rouse-tests\/\w+\/tests\.cjs(\s+lineNumber: )(\d+)(\s+columnNumber: )(\d+)/g

/** `program` is the main file of the bundle. */
export function inSources(text, program) {
  const folder = dirname(program)
  const map = new SourceMap(JSON.parse(readFileSync(join(folder, 'tests.cjs.map'), 'utf8')))

  function find(line, column) {
    const entry = map.findEntry(Number(line) - 1, Number(column) - 1)
    if (entry.originalSource === undefined) return undefined
    // Its path is relative to the folder of all bundles.
    const path = relative(root, resolve(folder, '..', entry.originalSource))
    return { path, line: entry.originalLine + 1, column: entry.originalColumn + 1 }
  }
  return text
    .replaceAll(inStack, (whole, line, column) => {
      const source = find(line, column)
      return source ? `${source.path}:${source.line}:${source.column}` : whole
    })
    .replaceAll(inField, (whole, name, beforeLine, line, beforeColumn, column) => {
      const source = find(line, column)
      if (source === undefined) return whole
      return `${name}${source.path}${beforeLine}${source.line}${beforeColumn}${source.column}`
    })
}
