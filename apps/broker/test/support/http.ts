export interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: the tests look into answers of every shape
  readonly body: any
}

/** Sends one request. Parses the body of the response; it is undefined if it is empty. */
export async function send(
  method: string,
  url: string,
  body?: unknown,
  init: RequestInit = {},
): Promise<Answer> {
  const response = await fetch(url, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    ...init,
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') ?? false
  return {
    status: response.status,
    headers: response.headers,
    body: isJson && text !== '' ? JSON.parse(text) : undefined,
  }
}

/** The API of one node. */
export function apiOf(url: string) {
  const at = (path: string) => `${url}/api/v1${path}`
  return {
    at,
    push: (...items: unknown[]) => send('POST', at('/push'), { items }),
    pop: (queue: string, query = '') =>
      send('GET', at(`/pop/queue/${encodeURIComponent(queue)}${query}`)),
    ack: (message: Ackable, status = 'completed', more: object = {}) =>
      send('POST', at('/ack'), { ...ackOf(message), status, ...more }),
    post: (path: string, body?: unknown) => send('POST', at(path), body),
    get: (path: string) => send('GET', at(path)),
    del: (path: string) => send('DELETE', at(path)),
  }
}

export interface Ackable {
  readonly transactionId: string
  readonly partitionId: string
  readonly leaseId: string
}

export function ackOf({ transactionId, partitionId, leaseId }: Ackable): Ackable {
  return { transactionId, partitionId, leaseId }
}
