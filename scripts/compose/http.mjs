// Requests of the compose test to a node or to the balancer.
import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

const requestMsMax = 60_000
const pollMs = 50
const agent = new Agent({ keepAlive: true })
/** The API key of all requests, once it is set. */
let token

export function useToken(key) {
  token = key
}

/** The connection closed before any byte of the response (`isUnanswered`), or in the middle of it. */
export class ConnectionClosed extends Error {
  constructor(cause, isUnanswered) {
    super(isUnanswered ? 'closed without an answer' : 'closed in the middle of the answer', {
      cause,
    })
    this.isUnanswered = isUnanswered
  }
}

const closings = ['ECONNRESET', 'EPIPE']

/**
 * Returns a response of any status; throws if the connection closes. Uses node:http, because fetch in Node 20
 * never settles if a connection closes before it is used, which happens on a published port while its node
 * starts. `key: null` sends no credential.
 */
export function ask(url, { body, signal, hangsUp = false, headers: own, key = token } = {}) {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST'
    const credential = key === null ? {} : { authorization: `Bearer ${key}` }
    const headers = { 'content-type': 'application/json', ...credential, ...own }
    const options = { method, headers, signal, timeout: requestMsMax }
    const sent = request(url, { ...options, agent: hangsUp ? false : agent })
    let hasBytes = () => false
    sent.on('socket', (socket) => {
      // On a reused connection bytesRead includes earlier responses.
      const before = socket.bytesRead
      hasBytes = () => socket.bytesRead > before
    })
    const fail = (error) => {
      reject(closings.includes(error.code) ? new ConnectionClosed(error, !hasBytes()) : error)
    }
    sent.on('error', fail)
    sent.on('timeout', () => sent.destroy(new Error('no response in time')))
    sent.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part) => {
        text += part
      })
      response.on('error', fail)
      response.on('end', () => {
        const { statusCode: status, headers } = response
        resolve({ status, headers, text, json: parse(text) })
      })
    })
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** The balancer's own responses are not JSON. */
function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export async function push(url, items) {
  const answer = await ask(`${url}/api/v1/push`, { body: { items } })
  if (answer.status !== 201) throw new Error(`push: ${answer.status} ${answer.text}`)
}

export function pop(url, queue, { timeoutMs, batch = 1, partitions = 1, ...options }) {
  const query = `wait=true&timeout=${timeoutMs}&batch=${batch}&partitions=${partitions}`
  return ask(`${url}/api/v1/pop/queue/${queue}?${query}`, options)
}

export function ack(url, messages) {
  const acknowledgments = messages.map(({ receipt }) => ({ receipt, status: 'completed' }))
  return ask(`${url}/api/v1/ack/batch`, { body: { acknowledgments } })
}

/** Throws unless all acks were accepted. */
export async function ackAll(url, messages) {
  const { status, json, text } = await ack(url, messages)
  if (status !== 200) throw new Error(`ack: ${status} ${text}`)
  const refused = json.filter(({ success }) => !success).length
  if (refused > 0) throw new Error(`${refused} of ${messages.length} acks were refused: ${text}`)
}

export async function stats(url) {
  const { status, json, text } = await ask(`${url}/stats`)
  if (status !== 200) throw new Error(`stats: ${status} ${text}`)
  return json
}

/** Repeats the check until it is true. An error counts as false; the last one is reported at the deadline. */
export async function until(what, check, msMax = 180_000) {
  const deadline = Date.now() + msMax
  let reason = 'the check was false'
  while (Date.now() < deadline) {
    try {
      if (await check()) return
    } catch (error) {
      reason = error.message
    }
    await delay(pollMs)
  }
  throw new Error(`not within ${msMax / 1_000} s: ${what} (${reason})`)
}

export function expect(condition, otherwise) {
  if (!condition) throw new Error(otherwise)
}
