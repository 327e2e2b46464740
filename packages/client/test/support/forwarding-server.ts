import type { Test } from 'tap'
import { type ScriptedRequest, type ScriptedServer, scriptedServer } from './scripted-server.ts'

/** A server that forwards every request to the node. If `drops` returns true, it drops the response. */
export async function forwardingServer(
  t: Test,
  nodeUrl: string | undefined,
  drops: (request: ScriptedRequest) => boolean = () => false,
): Promise<ScriptedServer> {
  return await scriptedServer(t, async (request) => {
    const { method } = request
    const answer = await fetch(`${nodeUrl}${request.path}`, {
      method,
      ...(request.body === undefined
        ? {}
        : {
            body: JSON.stringify(request.body),
            headers: { 'content-type': 'application/json' },
          }),
    })
    const body = answer.status === 204 ? undefined : await answer.json()
    return drops(request) ? 'destroy' : { status: answer.status, body }
  })
}
