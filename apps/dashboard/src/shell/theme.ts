import { Store } from '../api/store.ts'

export type Theme = 'system' | 'light' | 'dark'
const place = 'rouse-theme'

export const theme = new Store<Theme>(read())
apply(theme.value)

export function setTheme(chosen: Theme): void {
  try {
    localStorage.setItem(place, chosen)
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
  apply(chosen)
  theme.set(chosen)
}

/** Whether colours are dark now. Charts draw with colours from the style sheet, so they follow this. */
export function isDark(): boolean {
  if (theme.value !== 'system') return theme.value === 'dark'
  return matchMedia('(prefers-color-scheme: dark)').matches
}

function apply(chosen: Theme): void {
  if (chosen === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = chosen
}

function read(): Theme {
  try {
    const stored = localStorage.getItem(place)
    return stored === 'light' || stored === 'dark' ? stored : 'system'
  } catch {
    return 'system'
  }
}
