// What the functions of Rouse, and the driver that reads their answers, rely on in a session, whatever the role or
// the database has set.
//
//   direct            set once, when the connection begins: free from then on
//   through a pooler  a setting must not outlive its transaction. Where the server's own values do no harm, nothing is
//                     done; where one does, every statement gets a transaction of its own, which begins with the
//                     settings (host-client.ts). That costs two round trips, and only there.

export interface SessionSetting {
  readonly name: string
  readonly value: string
  /** Whether a node would go wrong, or answer otherwise, with what the server has. */
  readonly isHarmful: (found: string) => boolean
  /** A single statement does not suffer from it: behind a pooler it is no reason for transactions of our own. */
  readonly sparesStatements?: true
  /** What it does to a node that does not set it, for people. */
  readonly harm: string
}

const isOff = (found: string): boolean => found === 'off'
const isLimited = (found: string): boolean => found !== '0'

export const sessionSettings: readonly SessionSetting[] = [
  {
    name: 'default_transaction_isolation',
    value: 'read committed',
    isHarmful: (found) => found !== 'read committed',
    harm: 'a push would read lanes as they were before it waited, and its messages would not be delivered',
  },
  {
    name: 'search_path',
    value: 'pg_catalog, pg_temp',
    // By what is in its schemas, not by its text: see shadowsBuiltIns.
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
    harm: 'patterns inside functions would mean something else',
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
    harm: 'a commit that its synchronous standby did not confirm would pass for confirmed',
  },
  {
    name: 'lock_timeout',
    value: '0',
    isHarmful: isLimited,
    harm: 'calls that wait for each other would fail',
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
    // Between the statements of a transaction, and those begin with the settings.
    isHarmful: isLimited,
    sparesStatements: true,
    harm: 'a migration would lose its connection between two steps',
  },
  {
    name: 'idle_session_timeout',
    value: '0',
    isHarmful: isLimited,
    sparesStatements: true,
    harm: 'LISTEN would lose its connection whenever it is quiet',
  },
]
