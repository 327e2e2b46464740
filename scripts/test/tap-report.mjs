// Reads the raw TAP of one test file and counts its tests. A test is one `test(...)` at the top of the file.
import { createInterface } from 'node:readline'

const resultLine = /^(not ok|ok) \d+ - (.*?)( # (time=|SKIP|TODO).*)?$/

/** The counts, the skipped tests with reasons, and the lines of TAP. */
export async function readTap(stream) {
  const report = { passed: 0, failed: 0, skipped: [], lines: [] }
  for await (const line of createInterface({ input: stream })) {
    report.lines.push(line)
    const [, result, name, mark = ''] = resultLine.exec(line) ?? []
    if (result === undefined) continue
    if (/# (SKIP|TODO)/.test(mark)) report.skipped.push(`  skipped: ${name}${mark}`)
    else report[result === 'ok' ? 'passed' : 'failed'] += 1
  }
  return report
}

/** The failed assertions with the names of their tests and their diagnostics, without passed ones. */
export function failureText(lines) {
  return lines
    .filter((line) => !/^\s*ok \d/.test(line) && !/^\s*(1\.\.\d+|# time=.*)?$/.test(line))
    .join('\n')
}
