// Shortcuts: `g` and a letter opens a page, `/` moves to the first filter, `p` pauses updates. The titles of the links
// in the navigation show the letters.
import { useEffect } from 'preact/hooks'
import { isPaused } from '../api/use-data.ts'
import { shortcuts } from './navigation.tsx'
import { goTo, hrefOf } from './router.ts'

const pairMs = 1_000

export function useKeyboard(): void {
  useEffect(() => {
    let startedAt = Number.NEGATIVE_INFINITY
    const pressed = (event: KeyboardEvent) => {
      const isTyping = (event.target as Element).closest('input, textarea, select, dialog') !== null
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      const page = event.timeStamp - startedAt < pairMs ? shortcuts.get(event.key) : undefined
      startedAt = Number.NEGATIVE_INFINITY
      if (page !== undefined) goTo(hrefOf(page))
      else if (event.key === 'g') startedAt = event.timeStamp
      else if (event.key === 'p') isPaused.set(!isPaused.value)
      else if (event.key === '/') focusFilter(event)
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [])
}

function focusFilter(event: KeyboardEvent): void {
  const filter = document.querySelector<HTMLInputElement>('input[type=search]')
  if (filter === null) return
  event.preventDefault()
  filter.focus()
}
