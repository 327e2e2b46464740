import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export interface ScriptedRequest {
  readonly method: string
  readonly path: string
  // biome-ignore lint/suspicious/noExplicitAny: tests inspect bodies of every shape
  readonly body: any
  readonly atMs: number
}

export interface ScriptedServer {
  readonly url: string
  /** The requests so far. */
  readonly requests: ScriptedRequest[]
}

/** The response to a request. Undefined means no response; `destroy` closes the connection. */
export type ScriptedAnswer =
  | { readonly status: number; readonly body?: unknown; readonly headers?: Record<string, string> }
  | 'destroy'
  | undefined

/** A real HTTP server with scripted responses, for cases that are rare with a broker. */
export async function scriptedServer(
  t: Test,
  answer: (request: ScriptedRequest) => ScriptedAnswer | Promise<ScriptedAnswer>,
): Promise<ScriptedServer> {
  const requests: ScriptedRequest[] = []
  const server = createServer((request, response) => void serve(request, response))

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const seen = {
      method: request.method ?? '',
      path: request.url ?? '',
      body: text === '' ? undefined : JSON.parse(text),
      atMs: performance.now(),
    }
    requests.push(seen)
    const scripted = await answer(seen)
    if (scripted === undefined) return
    if (scripted === 'destroy') {
      request.socket.destroy()
      return
    }
    response.writeHead(scripted.status, { 'content-type': 'application/json', ...scripted.headers })
    response.end(scripted.body === undefined ? undefined : JSON.stringify(scripted.body))
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}
