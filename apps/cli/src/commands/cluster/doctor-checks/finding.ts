export interface Finding {
  readonly check: string
  readonly state: 'ok' | 'warning' | 'problem'
  readonly what: string
  /** The code of the error, if there is one. */
  readonly code?: string
  /** How to fix the problem. */
  readonly fix?: string
}

export function fine(check: string, what: string): Finding {
  return { check, state: 'ok', what }
}

export function warning(check: string, what: string, fix: string): Finding {
  return { check, state: 'warning', what, fix }
}

export function problem(check: string, what: string, fix: string, code?: string): Finding {
  return { check, state: 'problem', what, ...(code !== undefined && { code }), fix }
}
