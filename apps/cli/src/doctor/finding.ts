export interface Finding {
  readonly check: string
  readonly state: 'ok' | 'warning' | 'problem'
  readonly what: string
  /** Of the error that a program would end with, where there is one. */
  readonly code?: string
  /** What to do about it. */
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
