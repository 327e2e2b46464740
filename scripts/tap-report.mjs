// Reads raw TAP as tap writes it (files at the margin, their tests one step in), prints one line
// per file as it ends, what was skipped and why, everything about a file that failed, and counts the tests of each.
import { createInterface } from 'node:readline'

const resultLine = /^( {4})?(not ok|ok) \d+ - (.*?)( # (time=|SKIP|TODO).*)?$/

/**
 * A test is one `test(...)` at the top of a file. A file that fails on its own (it crashed, timed
 * out, or held no test) counts as one failed test, so that no failure is ever summed to zero.
 */
export async function reportTap(stream, print) {
  const files = []
  let file = { passed: 0, failed: 0, skipped: [], lines: [] }
  for await (const line of createInterface({ input: stream })) {
    file.lines.push(line)
    const [, indent, result, name, mark = ''] = resultLine.exec(line) ?? []
    if (result === undefined) continue
    const skipped = /# (SKIP|TODO)/.test(mark)
    if (skipped) file.skipped.push(`  skipped: ${name}${mark}`)
    if (indent !== undefined) {
      if (!skipped) file[result === 'ok' ? 'passed' : 'failed'] += 1
      continue
    }
    if (result === 'not ok' && !skipped) {
      file.failed = Math.max(file.failed, 1)
      print(failureText(file.lines))
    }
    const tests = `${file.passed} passed${file.failed > 0 ? `, ${file.failed} FAILED` : ''}`
    print(`${file.failed > 0 ? '✗' : '✓'} ${name}: ${tests}${seconds(mark)}`)
    for (const what of file.skipped) print(what)
    files.push({ name, passed: file.passed, failed: file.failed })
    file = { passed: 0, failed: 0, skipped: [], lines: [] }
  }
  return files
}

/** The failed assertions with the names of their tests and their diagnostics; no passed ones. */
function failureText(lines) {
  return lines
    .filter((line) => !/^\s*ok \d/.test(line) && !/^\s*(1\.\.\d+|# time=.*)?$/.test(line))
    .join('\n')
}

function seconds(mark) {
  const ms = Number(/time=([\d.]+)ms/.exec(mark)?.[1])
  return Number.isNaN(ms) ? '' : ` (${(ms / 1_000).toFixed(1)} s)`
}
