// Plain HTTP/1.1 over keep-alive connections, like most clients.
import { Agent, request } from 'node:http'
import { type Transport, TransportError } from '@rouse/client'

export function httpTransport(): Transport {
  const agent = new Agent({ keepAlive: true, scheduling: 'lifo' })
  return {
    send: ({ method, url, headers, body, signal }) =>
      new Promise((resolve, reject) => {
        const fail = (error: unknown): void => reject(new TransportError(error))
        const sent = request(url, { agent, method, headers, signal }, (response) => {
          let text = ''
          response.setEncoding('utf8')
          response.on('data', (part: string) => {
            text += part
          })
          response.once('error', fail)
          // `close` without `end` means that the connection broke in the middle of the response.
          response.once('close', () => fail(new Error('the response was cut off')))
          response.once('end', () => {
            const retryAfter = response.headers['retry-after']
            resolve({ status: response.statusCode ?? 0, retryAfter, text })
          })
        })
        sent.once('error', fail)
        sent.end(body)
      }),
    close: () => agent.destroy(),
  }
}
