const lease = /^-[A-Za-z0-9_-]{47}$/

/**
 * Moves lease ids that begin with a dash behind `--`. Lease ids are 48 characters of base64url, so one in 64
 * begins with a dash and would be parsed as flags.
 */
export function leaseIdsLast(argv: readonly string[]): readonly string[] {
  if (argv.includes('--') || !argv.some((word) => lease.test(word))) return argv
  return [
    ...argv.filter((word) => !lease.test(word)),
    '--',
    ...argv.filter((word) => lease.test(word)),
  ]
}
