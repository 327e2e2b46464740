// The name that a client probably meant. A table of synonyms knows words of other APIs; spelling mistakes are
// found by edit distance.

/** By normalised name. The first candidate that the place knows is suggested. */
const synonyms: Readonly<Record<string, readonly string[]>> = {
  ack: ['autoAck'],
  acknowledgements: ['acknowledgments'],
  acks: ['acknowledgments'],
  after: ['cursor', 'delayMs'],
  at: ['runAt'],
  attributes: ['headers'],
  backoff: ['retryBackoffMs'],
  batchsize: ['batch'],
  body: ['payload', 'data'],
  code: ['errorCode'],
  content: ['payload', 'data'],
  count: ['batch', 'limit'],
  crontab: ['cron'],
  data: ['payload'],
  deadletters: ['deadLetterQueue'],
  deduplicationid: ['dedupeKey', 'transactionId'],
  delay: ['delayMs'],
  delayms: ['delayMs', 'retryBackoffMs'],
  delayseconds: ['delayMs'],
  deliverat: ['runAt'],
  dlq: ['deadLetterQueue'],
  duration: ['seconds', 'leaseSeconds'],
  errormessage: ['error'],
  expression: ['cron'],
  from: ['subscriptionFrom', 'timestamp'],
  group: ['consumerGroup'],
  id: ['dedupeKey', 'transactionId'],
  returnvalue: ['result'],
  output: ['result'],
  percent: ['progress'],
  idempotencykey: ['dedupeKey', 'transactionId'],
  interval: ['cron'],
  key: ['partition', 'dedupeKey'],
  lease: ['leaseSeconds', 'leaseTime', 'leaseId', 'seconds'],
  leaseseconds: ['leaseTime', 'seconds'],
  leasetime: ['leaseSeconds', 'seconds'],
  limit: ['batch'],
  max: ['batch', 'limit'],
  maxattempts: ['retryLimit'],
  maxretries: ['retryLimit'],
  message: ['payload', 'error'],
  messages: ['items', 'acknowledgments'],
  metadata: ['headers'],
  mode: ['subscriptionMode'],
  name: ['queue'],
  ops: ['operations'],
  outcome: ['status'],
  page: ['cursor'],
  pagesize: ['limit'],
  partitionkey: ['partition'],
  pattern: ['cron'],
  prio: ['priority'],
  queuename: ['queue'],
  reason: ['error'],
  receipthandle: ['receipt'],
  retries: ['retryLimit'],
  retrydelayms: ['retryBackoffMs'],
  runon: ['runAt'],
  schedule: ['cron'],
  scheduledat: ['runAt'],
  scheduledfor: ['runAt'],
  size: ['batch', 'limit'],
  state: ['status'],
  status: ['state'],
  time: ['timestamp', 'runAt'],
  timeoutms: ['timeout'],
  topic: ['queue'],
  tz: ['timeZone'],
  value: ['payload', 'data'],
  visibilitytimeout: ['leaseSeconds', 'leaseTime', 'seconds'],
  waitms: ['timeout'],
}

/**
 * The known name that is most likely meant, or undefined. `nested` are names of a deeper level, written with
 * their path (`options.retryLimit`): one of them is suggested only if its last part is the given name.
 */
export function suggest(
  name: string,
  known: readonly string[],
  nested: readonly string[] = [],
): string | undefined {
  const given = normalise(name)
  const candidates = Object.hasOwn(synonyms, given) ? (synonyms[given] as readonly string[]) : []
  return (
    known.find((one) => normalise(one) === given) ??
    candidates.find((one) => known.includes(one)) ??
    nested.find((path) => normalise(path.slice(path.lastIndexOf('.') + 1)) === given) ??
    nearest(given, known)
  )
}

function normalise(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '')
}

/** Longer names are compared with nothing: the distance of a huge text to every name would take too long. */
const lengthMax = 64

function nearest(given: string, known: readonly string[]): string | undefined {
  if (given.length > lengthMax) return undefined
  let best: string | undefined
  let bestDistance = given.length <= 4 ? 2 : Math.max(2, Math.floor(given.length / 4)) + 1
  for (const name of known) {
    const distance = Math.min(...forms(name).map((form) => editDistance(given, form)))
    if (distance < bestDistance) {
      best = name
      bestDistance = distance
    }
  }
  return best
}

/** A name with its unit and without: `dely` means `delayMs`. */
function forms(name: string): string[] {
  return [normalise(name), normalise(name.replace(/(Ms|Seconds)$/, ''))]
}

/** The number of characters to insert, delete, replace or exchange with their neighbour. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const change = at(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let cost = Math.min(change, at(last, j) + 1, at(row, j - 1) + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, at(beforeLast, j - 2) + 1)
      }
      row.push(cost)
    }
    beforeLast = last
    last = row
  }
  return at(last, b.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] as number
}
