import { useEffect, useState } from 'preact/hooks'
import { connection, nodeUrls } from '../api/connection.ts'
import { useStore } from '../api/store.ts'
import { nowMs } from '../clock.ts'
import { duration } from '../parts/format.ts'

/** Says how long the node has not answered, and links to the dashboard on other nodes. */
export function ConnectionBanner() {
  const { lostAtMs } = useStore(connection)
  const urls = useStore(nodeUrls)
  const [, tick] = useState(0)
  useEffect(() => {
    if (lostAtMs === undefined) return
    const timer = setInterval(() => tick((last) => last + 1), 1_000)
    return () => clearInterval(timer)
  }, [lostAtMs])
  if (lostAtMs === undefined) return null
  const others = [...urls].filter(([, url]) => !location.href.startsWith(`${url}/`))
  return (
    <div class="banner" role="alert">
      <strong>No connection for {duration(nowMs() - lostAtMs)}.</strong> The figures are old; the
      page tries again by itself.
      {others.length === 0 ? null : (
        <span>
          {' '}
          The same page on other nodes:{' '}
          {others.map(([id, url]) => (
            <a key={id} href={`${url}/dashboard/${location.hash}`}>
              {id}
            </a>
          ))}
        </span>
      )}
    </div>
  )
}
