import { test } from 'tap'
import { type ErrorCode, errorRegistry, isErrorCode, RouseError, toProblem } from '../src/index.ts'

const where = { requestId: 'r-1', node: 'a' }

test('an error becomes a problem with everything a client needs', async (t) => {
  const error = new RouseError('invalid_request', 'batch must be an integer from 1 to 1000', {
    errors: [{ field: 'batch', message: 'must be an integer from 1 to 1000' }],
  })
  t.strictSame(toProblem(error, where), {
    type: 'urn:rouse:error:invalid_request',
    title: 'The request is not valid',
    status: 400,
    code: 'invalid_request',
    detail: 'batch must be an integer from 1 to 1000',
    retryable: false,
    requestId: 'r-1',
    node: 'a',
    errors: [{ field: 'batch', message: 'must be an integer from 1 to 1000' }],
    error: 'batch must be an integer from 1 to 1000',
  })
})

test('an unexpected error does not reveal its message', async (t) => {
  const problem = toProblem(new Error('password "hunter2" is wrong'), where)
  t.match(problem, { status: 500, code: 'internal' })
  t.notMatch(JSON.stringify(problem), 'hunter2')
  t.match(toProblem('thrown text', where), { code: 'internal' })
})

test('each error has the status that the API documents', async (t) => {
  const stated: Partial<Record<ErrorCode, number>> = {
    lease_lost: 409,
    queue_in_use: 409,
    repeat_too_late: 409,
    consumer_transaction_open: 409,
    payload_too_large: 413,
    unsupported_media_type: 415,
    queue_paused: 423,
    queue_full: 429,
    rate_limited: 429,
    headers_too_large: 431,
    starting: 503,
    overloaded: 503,
    partition_locked: 503,
    draining: 503,
    encryption_unavailable: 503,
    issuer_unavailable: 503,
    database_unavailable: 503,
    outcome_unknown: 503,
  }
  for (const [code, status] of Object.entries(stated)) {
    t.equal(new RouseError(code as ErrorCode).status, status, code)
  }
})

test('every 429 and 503, and one 409, has a Retry-After', async (t) => {
  for (const code of Object.keys(errorRegistry)) {
    if (!isErrorCode(code)) return
    const error = new RouseError(code)
    const comesBack = [429, 503].includes(error.status) || code === 'consumer_transaction_open'
    t.equal(error.retryAfterSeconds !== undefined, comesBack, code)
  }
  t.equal(new RouseError('overloaded', 'full', { retryAfterSeconds: 5 }).retryAfterSeconds, 5)
})

test('isErrorCode accepts registered codes only', async (t) => {
  t.ok(isErrorCode('lease_lost'))
  for (const code of ['nonsense', 'toString', undefined, 5]) t.notOk(isErrorCode(code))
})
