import { session } from '../api/session.ts'
import { useStore } from '../api/store.ts'
import { CopyButton } from './copy.tsx'

export interface Call {
  readonly path: string
  readonly method?: string
  readonly body?: unknown
}

/** The request of a screen as a command. */
export function Curl({ path, method = 'GET', body }: Call) {
  const current = useStore(session)
  const text = curlText({ path, method, body }, current?.isOpen ?? true)
  return (
    <div class="curl">
      <code>{text}</code>
      <CopyButton text={text} label="Copy curl" />
    </div>
  )
}

export function curlText({ path, method = 'GET', body }: Call, isOpen: boolean): string {
  const address = new URL(`..${path}`, document.baseURI).href
  const parts = [`curl -s${method === 'GET' ? '' : ` -X ${method}`} ${quoted(address)}`]
  if (!isOpen) parts.push('-H "Authorization: Bearer $ROUSE_TOKEN"')
  if (body !== undefined) {
    parts.push("-H 'content-type: application/json'", `-d ${quoted(JSON.stringify(body))}`)
  }
  return parts.join(' ')
}

/** In quotes of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
