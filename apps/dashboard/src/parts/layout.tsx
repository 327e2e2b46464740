import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { type Call, Curl } from './curl.tsx'

/** A page: heading, actions, content, and the request behind it as a command. */
export function Page({
  title,
  note,
  actions,
  curl,
  children,
}: {
  title: string
  note?: ComponentChildren
  actions?: ComponentChildren
  curl: Call
  children: ComponentChildren
}) {
  useEffect(() => {
    document.title = `${title} · Rouse`
  }, [title])
  return (
    <main id="content" tabIndex={-1}>
      <header class="page-head">
        <div>
          <h1>{title}</h1>
          {note === undefined ? null : <p class="muted">{note}</p>}
        </div>
        <div class="actions">{actions}</div>
      </header>
      {children}
      <Curl {...curl} />
    </main>
  )
}

export function Panel({
  title,
  note,
  actions,
  children,
}: {
  title: string
  note?: ComponentChildren
  actions?: ComponentChildren
  children: ComponentChildren
}) {
  return (
    <section class="panel" aria-label={title}>
      <header class="panel-head">
        <h2>{title}</h2>
        {note === undefined ? null : <span class="muted">{note}</span>}
        <span class="grow" />
        {actions}
      </header>
      <div class="panel-body">{children}</div>
    </section>
  )
}

export function Figure({
  label,
  value,
  unit,
  tone,
}: {
  label: string
  value: string
  unit?: string
  tone?: 'bad' | 'warn' | undefined
}) {
  return (
    <div class={`figure ${tone ?? ''}`}>
      <span class="figure-label">{label}</span>
      <span class="figure-value">
        {value}
        {unit === undefined ? null : <small> {unit}</small>}
      </span>
    </div>
  )
}

const tones: Readonly<Record<string, string>> = {
  ok: 'good',
  alive: 'good',
  healthy: 'good',
  completed: 'good',
  done: 'good',
  paused: 'warn',
  held: 'bad',
  no_consumers: 'bad',
  retrying: 'warn',
  dead: 'bad',
  suspect: 'warn',
  aggressive: 'warn',
  unreachable: 'bad',
  refused: 'bad',
  failed: 'bad',
  cancelled: 'warn',
  revoked: 'bad',
  expired: 'warn',
}

/** A state as a word; the colour only repeats it. */
export function State({ of }: { of: string }) {
  return <span class={`state ${tones[of] ?? ''}`}>{of.replaceAll('_', ' ')}</span>
}
