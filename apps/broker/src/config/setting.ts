// The kinds of settings: how each is parsed from text, validated from a file, and printed.
import { ConfigError } from './config-error.ts'

export interface Setting<Value> {
  readonly env: string
  readonly fallback: Value
  /** Printed masked. May be read from the file that `<env>_FILE` names. */
  readonly secret: boolean
  /** Parses the text of an environment variable or a flag. */
  readonly parse: (text: string) => Value
  /** Validates a typed value from the configuration file. */
  readonly check: (value: unknown) => Value
}

export function text<Value extends string | undefined = string>(
  env: string,
  fallback: Value,
  options: { readonly secret?: boolean } = {},
): Setting<string | Value> {
  const check = (value: unknown): string => {
    if (typeof value === 'string' && value !== '') return value
    throw new ConfigError(env, 'must be a non-empty string')
  }
  return { env, fallback, secret: options.secret ?? false, parse: check, check }
}

export function integer<Value extends number | undefined = number>(
  env: string,
  fallback: Value,
  range: { readonly min: number; readonly max: number },
): Setting<number | Value> {
  const check = (value: unknown): number => {
    if (Number.isSafeInteger(value)) {
      const number = value as number
      if (number >= range.min && number <= range.max) return number
    }
    throw new ConfigError(env, `must be an integer from ${range.min} to ${range.max}`)
  }
  const parse = (word: string): number => check(/^-?\d{1,16}$/.test(word) ? Number(word) : word)
  return { env, fallback, secret: false, parse, check }
}

export function number(
  env: string,
  fallback: number,
  range: { readonly min: number; readonly max: number },
): Setting<number> {
  const check = (value: unknown): number => {
    if (typeof value === 'number' && value >= range.min && value <= range.max) return value
    throw new ConfigError(env, `must be a number from ${range.min} to ${range.max}`)
  }
  const parse = (word: string): number =>
    check(/^\d{1,9}(\.\d{1,9})?$/.test(word) ? Number(word) : word)
  return { env, fallback, secret: false, parse, check }
}

export function choice<const Choice extends string>(
  env: string,
  fallback: Choice,
  choices: readonly Choice[],
): Setting<Choice> {
  const check = (value: unknown): Choice => {
    const chosen = choices.find((one) => one === value)
    if (chosen !== undefined) return chosen
    throw new ConfigError(env, `must be one of ${choices.join(', ')}`)
  }
  return { env, fallback, secret: false, parse: check, check }
}

export function boolean<Value extends boolean | undefined = boolean>(
  env: string,
  fallback: Value,
): Setting<boolean | Value> {
  const check = (value: unknown): boolean => {
    if (typeof value === 'boolean') return value
    throw new ConfigError(env, 'must be true or false')
  }
  const parse = (word: string): boolean =>
    check(word === 'true' || (word === 'false' ? false : word))
  return { env, fallback, secret: false, parse, check }
}

/** A setting that is off unless it is 1 or true. */
export function flag(env: string): Setting<boolean> {
  const check = (value: unknown): boolean => {
    if (typeof value === 'boolean') return value
    throw new ConfigError(env, 'must be 1 or 0')
  }
  const words: Readonly<Record<string, boolean>> = {
    '1': true,
    true: true,
    '0': false,
    false: false,
  }
  const parse = (word: string): boolean => check(Object.hasOwn(words, word) ? words[word] : word)
  return { env, fallback: false, secret: false, parse, check }
}

/** Comma-separated words. In a file, a list. */
export function list(env: string): Setting<readonly string[]> {
  const check = (value: unknown): readonly string[] => {
    if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value
    throw new ConfigError(env, 'must be a list of strings')
  }
  return { env, fallback: [], secret: false, parse: wordsOf, check }
}

/** Ignores empty entries, such as after a trailing comma. */
export function wordsOf(line: string): readonly string[] {
  const words = line.split(',').map((word) => word.trim())
  return words.filter((word) => word !== '')
}

export function integers(
  env: string,
  range: { readonly min: number; readonly max: number },
): Setting<readonly number[] | undefined> {
  const one = integer(env, 0, range)
  const check = (value: unknown): readonly number[] => {
    if (Array.isArray(value) && value.length > 0) return value.map(one.check)
    throw new ConfigError(env, 'must be a list of integers')
  }
  const parse = (words: string): readonly number[] =>
    words.split(',').map((word) => one.parse(word.trim()))
  return { env, fallback: undefined, secret: false, parse, check }
}
