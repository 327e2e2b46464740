import { useState } from 'preact/hooks'
import { CopyButton } from './copy.tsx'

const shownMax = 20_000

/** Numbers that were read exactly are written exactly, because `JSON.stringify` keeps raw JSON. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? 'null'
}

/** A payload, as text. */
export function Json({ value, label }: { value: unknown; label: string }) {
  const [isWhole, setIsWhole] = useState(false)
  const text = jsonText(value)
  const isCut = text.length > shownMax && !isWhole
  return (
    <div class="json">
      <pre tabIndex={0} aria-label={label}>
        {isCut ? text.slice(0, shownMax) : text}
      </pre>
      <div class="actions">
        {isCut ? (
          <button type="button" class="small" onClick={() => setIsWhole(true)}>
            Show all {Math.round(text.length / 1_000)} kB
          </button>
        ) : null}
        <CopyButton text={text} />
      </div>
    </div>
  )
}
