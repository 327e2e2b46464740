// The session settings that the SQL functions and the driver rely on, regardless of what is configured for
// the role or the database.
//
//   direct            set once, when the connection starts; no cost after that
//   through a pooler  a setting must not outlive its transaction. If the server's values are harmless,
//                     nothing is done. If a value is harmful, each statement is wrapped in a transaction that
//                     starts with the settings (host-client.ts). Only this case costs two extra round trips.

export interface SessionSetting {
  readonly name: string
  readonly value: string
  /** Whether a node would fail or return other results with the server's value. */
  readonly isHarmful: (found: string) => boolean
  /**
   * The setting does not affect a single statement, so behind a pooler it is no reason to wrap statements.
   */
  readonly sparesStatements?: true
  /** What happens with a harmful value; used in messages. */
  readonly harm: string
}

const isOff = (found: string): boolean => found === 'off'
const isLimited = (found: string): boolean => found !== '0'

export const sessionSettings: readonly SessionSetting[] = [
  {
    name: 'default_transaction_isolation',
    value: 'read committed',
    isHarmful: (found) => found !== 'read committed',
    harm: 'a push that waited would not see the current lanes, and its messages would not be delivered',
  },
  {
    name: 'search_path',
    value: 'pg_catalog, pg_temp',
    // The harm depends on the content of the schemas, not on the value: see shadowsBuiltIns.
    isHarmful: () => false,
    harm: 'a function or operator in one of its schemas would run in place of a built-in one',
  },
  {
    name: 'DateStyle',
    value: 'ISO, MDY',
    isHarmful: (found) => !found.startsWith('ISO'),
    harm: 'times would be read as text, and answers with times would fail',
  },
  {
    name: 'extra_float_digits',
    value: '1',
    isHarmful: (found) => Number(found) < 0,
    harm: 'times and counts would be rounded',
  },
  {
    name: 'standard_conforming_strings',
    value: 'on',
    isHarmful: isOff,
    harm: 'patterns in SQL functions would have another meaning',
  },
  {
    name: 'array_nulls',
    value: 'on',
    isHarmful: isOff,
    harm: 'an absent value in a list would become the text NULL',
  },
  {
    name: 'client_min_messages',
    value: 'notice',
    isHarmful: (found) => ['error', 'fatal', 'panic'].includes(found),
    harm: 'a commit that the synchronous standby did not confirm would be reported as confirmed',
  },
  {
    name: 'lock_timeout',
    value: '0',
    isHarmful: isLimited,
    harm: 'a call that waits for the locks of another call would fail',
  },
  {
    name: 'statement_timeout',
    value: '0',
    isHarmful: isLimited,
    harm: 'a purge, a migration or a commit that waits for its standby would be cancelled and repeated',
  },
  {
    name: 'transaction_timeout',
    value: '0',
    isHarmful: isLimited,
    harm: 'a long call would lose its connection',
  },
  {
    name: 'idle_in_transaction_session_timeout',
    value: '0',
    // This timeout cannot end a single statement: it counts only between the statements of a transaction,
    // and each transaction starts with the settings.
    isHarmful: isLimited,
    sparesStatements: true,
    harm: 'a migration would lose its connection between two steps',
  },
  {
    name: 'idle_session_timeout',
    value: '0',
    isHarmful: isLimited,
    sparesStatements: true,
    harm: 'LISTEN would lose its connection whenever it sends no statement for that time',
  },
]
