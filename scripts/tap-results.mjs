// Counts tests in raw TAP as tap writes it: files at the margin, their tests one step in.

const resultLine = /^( {4})?(not ok|ok) \d+(.*)$/

/** A test is one `test(...)` at the top of a file. A file that fails on its own (it crashed, timed
 * out, or held no test) counts as one failed test, so that no failure is ever summed to zero. */
export function countTapResults(tap) {
  const total = { passed: 0, failed: 0 }
  let failedInFile = 0
  for (const line of tap.split('\n')) {
    const [, indent, result, rest] = resultLine.exec(line) ?? []
    if (result === undefined) continue
    const failed = result === 'not ok' && !/# TODO/i.test(rest)
    if (indent !== undefined) {
      if (failed) failedInFile += 1
      else if (!/# (SKIP|TODO)/i.test(rest)) total.passed += 1
      continue
    }
    total.failed += failed ? Math.max(failedInFile, 1) : failedInFile
    failedInFile = 0
  }
  return total
}
