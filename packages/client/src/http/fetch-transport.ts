import { type Transport, TransportError } from './transport.ts'

export function createTransport(): Transport {
  return {
    async send({ method, url, headers, body, signal }) {
      try {
        const answer = await fetch(url, {
          method,
          headers,
          signal,
          ...(body === undefined ? {} : { body }),
        })
        const text = await answer.text()
        const retryAfter = answer.headers.get('retry-after') ?? undefined
        return { status: answer.status, retryAfter, text }
      } catch (error) {
        throw new TransportError(error)
      }
    },
    close() {},
  }
}
