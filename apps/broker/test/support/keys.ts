import { eventually } from '@rouse/testkit'
import { type Answer, send } from './http.ts'

/** A request with an API key. */
export function sendAs(
  token: string | undefined,
  method: string,
  url: string,
  body?: unknown,
): Promise<Answer> {
  const headers: Record<string, string> = {}
  if (token !== undefined) headers.authorization = `Bearer ${token}`
  if (body !== undefined) headers['content-type'] = 'application/json'
  return send(method, url, body, { headers })
}

export interface MadeKey {
  readonly id: string
  readonly key: string
}

/** Creates a key through a node. Without a token, the node must still be open. */
export async function makeKey(
  url: string,
  token: string | undefined,
  body: Readonly<Record<string, unknown>>,
): Promise<MadeKey> {
  const answer = await sendAs(token, 'POST', `${url}/api/v1/keys`, { name: 'test', ...body })
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
  return answer.body
}

/** Resolves when every worker of the node gives this status for the key. */
export async function untilKnown(url: string, token: string, status: number): Promise<void> {
  await eventually(async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () =>
        fetch(`${url}/api/v1/keys`, {
          headers: { authorization: `Bearer ${token}`, connection: 'close' },
        }),
      ),
    )
    return answers.every((answer) => answer.status === status)
  })
}
