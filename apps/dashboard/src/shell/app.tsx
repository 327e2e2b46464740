import { useEffect, useState } from 'preact/hooks'
import { returnFromIssuer } from '../api/issuer-login.ts'
import { startStream } from '../api/live.ts'
import { readSession, session } from '../api/session.ts'
import { useStore } from '../api/store.ts'
import { AuditPage } from '../pages/audit.tsx'
import { ClusterPage } from '../pages/cluster.tsx'
import { DatabasePage } from '../pages/database.tsx'
import { DeadLettersPage } from '../pages/dead-letters.tsx'
import { GroupsPage } from '../pages/groups.tsx'
import { KeysPage } from '../pages/keys.tsx'
import { MessagePage } from '../pages/message.tsx'
import { MessagesPage } from '../pages/messages.tsx'
import { OverviewPage } from '../pages/overview.tsx'
import { QueuePage } from '../pages/queue.tsx'
import { QueuesPage } from '../pages/queues.tsx'
import { SchedulesPage } from '../pages/schedules.tsx'
import { Empty } from '../parts/notice.tsx'
import { ConnectionBanner } from './connection-banner.tsx'
import { useKeyboard } from './keyboard.ts'
import { LoginPage } from './login.tsx'
import { Navigation } from './navigation.tsx'
import { hrefOf, type Route, useRoute } from './router.ts'

const sessionRetryMs = 2_000

export function App() {
  const current = useStore(session)
  const route = useRoute()
  useKeyboard()
  const failure = useSession()
  const isSignedIn = current !== undefined && current.principal !== null
  useEffect(() => (isSignedIn ? startStream() : undefined), [isSignedIn])

  if (current === undefined) return <ConnectionBanner />
  if (!isSignedIn) return <LoginPage failure={failure} />
  return (
    <div class="shell">
      <a class="skip" href="#content" onClick={skip}>
        Skip to the content
      </a>
      <Navigation page={route.page} />
      <div class="content">
        <ConnectionBanner />
        <CurrentPage route={route} />
      </div>
    </div>
  )
}

/** The fragment of the address is the page, so the link must not change it. */
function skip(event: Event): void {
  event.preventDefault()
  document.querySelector<HTMLElement>('#content')?.focus()
}

/** Returns why signing in with the issuer failed, if it did. */
function useSession(): string | undefined {
  const [failure, setFailure] = useState<string>()
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const read = () => {
      readSession().catch(() => {
        timer = setTimeout(read, sessionRetryMs)
      })
    }
    returnFromIssuer()
      .catch((error: unknown) => setFailure((error as Error).message))
      .finally(read)
    return () => clearTimeout(timer)
  }, [])
  return failure
}

function CurrentPage({ route }: { route: Route }) {
  const { page, names } = route
  const [name] = names
  switch (page) {
    case 'overview':
      return <OverviewPage />
    case 'queues':
      return name === undefined ? <QueuesPage /> : <QueuePage key={name} queue={name} />
    case 'messages':
      return name === undefined ? <MessagesPage /> : <MessagePage key={name} id={name} />
    case 'dead-letters':
      return <DeadLettersPage />
    case 'groups':
      return <GroupsPage />
    case 'schedules':
      return <SchedulesPage />
    case 'cluster':
      return <ClusterPage />
    case 'database':
      return <DatabasePage />
    case 'keys':
      return <KeysPage />
    case 'audit':
      return <AuditPage />
    default:
      return (
        <main id="content">
          <Empty title={`There is no page “${page}”`}>
            <a href={hrefOf('overview')}>Go to the overview</a>
          </Empty>
        </main>
      )
  }
}
