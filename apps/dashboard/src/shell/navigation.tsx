import { useEffect, useRef } from 'preact/hooks'
import { streamState } from '../api/live.ts'
import { may, session, signOut } from '../api/session.ts'
import { useStore } from '../api/store.ts'
import { isPaused } from '../api/use-data.ts'
import { hrefOf } from './router.ts'
import { setTheme, type Theme, theme } from './theme.ts'

const pages = [
  ['overview', 'Overview', 'o'],
  ['queues', 'Queues', 'q'],
  ['messages', 'Messages', 'm'],
  ['dead-letters', 'Dead letters', 'd'],
  ['groups', 'Groups', 'g'],
  ['schedules', 'Schedules', 's'],
  ['cluster', 'Cluster', 'c'],
  ['database', 'Database', 'b'],
  ['keys', 'Keys', 'k'],
  ['audit', 'Audit', 'a'],
] as const

const forAdmins: readonly string[] = ['keys', 'audit']

/** The letters after `g`. */
export const shortcuts: ReadonlyMap<string, string> = new Map(
  pages.map(([page, , letter]) => [letter, page]),
)

export function Navigation({ page }: { page: string }) {
  const current = useStore(session)
  const list = useRef<HTMLUListElement>(null)
  // On a phone the list scrolls.
  useEffect(() => {
    list.current
      ?.querySelector('[aria-current]')
      ?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [page])
  const shown = pages.filter(([name]) => !forAdmins.includes(name) || may('admin'))
  return (
    <nav class="navigation" aria-label="Pages">
      <div class="brand">
        <img src="./favicon.svg" alt="" width="20" height="20" />
        Rouse
      </div>
      <ul ref={list}>
        {shown.map(([name, title, letter]) => (
          <li key={name}>
            <a
              href={hrefOf(name)}
              aria-current={page === name ? 'page' : undefined}
              title={`g ${letter}`}
            >
              {title}
            </a>
          </li>
        ))}
      </ul>
      <div class="navigation-foot">
        <LiveSwitch />
        <ThemeSwitch />
        {current === undefined || current.isOpen ? (
          <span class="muted">No sign-in needed</span>
        ) : (
          <div class="who">
            <span title={current.grants.join('\n')}>{current.principal}</span>
            <button type="button" class="small" onClick={() => void signOut()}>
              Sign out
            </button>
          </div>
        )}
      </div>
    </nav>
  )
}

const states = {
  off: 'paused',
  connecting: 'connecting',
  live: 'live',
  polling: 'polling',
} as const

function LiveSwitch() {
  const paused = useStore(isPaused)
  const state = useStore(streamState)
  return (
    <button
      type="button"
      class="small live"
      aria-pressed={paused}
      onClick={() => isPaused.set(!paused)}
      title={paused ? 'Nothing is read until you resume' : 'Stop reading new data'}
    >
      <span class={`dot ${paused ? '' : state}`} />
      {paused ? 'Paused: resume' : `Updates: ${states[state]}`}
    </button>
  )
}

function ThemeSwitch() {
  const chosen = useStore(theme)
  return (
    <label class="theme">
      <span class="off-screen">Colours</span>
      <select value={chosen} onChange={(event) => setTheme(event.currentTarget.value as Theme)}>
        <option value="system">System colours</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  )
}
