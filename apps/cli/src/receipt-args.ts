const receipt = /^-[A-Za-z0-9_-]{47}$/

/**
 * Moves receipts that begin with a dash behind `--`. Receipts are 48 characters of base64url, so one in 64
 * begins with a dash and would be parsed as flags.
 */
export function receiptsLast(argv: readonly string[]): readonly string[] {
  if (argv.includes('--') || !argv.some((word) => receipt.test(word))) return argv
  return [
    ...argv.filter((word) => !receipt.test(word)),
    '--',
    ...argv.filter((word) => receipt.test(word)),
  ]
}
