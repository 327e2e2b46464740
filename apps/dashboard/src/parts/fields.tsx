// Filters, which are in the address, and simple form fields.
import type { ComponentChildren } from 'preact'
import { setQuery, useRoute } from '../shell/router.ts'

export function FilterText({
  name,
  label,
  placeholder,
}: {
  name: string
  label: string
  placeholder?: string
}) {
  const { query } = useRoute()
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="search"
        name={name}
        value={query[name] ?? ''}
        placeholder={placeholder}
        onInput={(event) => setQuery({ [name]: event.currentTarget.value, cursor: undefined })}
      />
    </label>
  )
}

export function FilterChoice({
  name,
  label,
  choices,
}: {
  name: string
  label: string
  choices: readonly (readonly [value: string, text: string])[]
}) {
  const { query } = useRoute()
  return (
    <label class="field">
      <span>{label}</span>
      <select
        name={name}
        value={query[name] ?? ''}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value, cursor: undefined })}
      >
        {choices.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

export function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
    </label>
  )
}

/** Names and values in two columns. */
export function Facts({ facts }: { facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
