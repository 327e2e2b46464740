import { setQuery, useRoute } from '../shell/router.ts'

/** To the first and the next page of a list whose cursor is in the address. Nothing, if there is one page. */
export function Pager({ next }: { next: string | null }) {
  const { query } = useRoute()
  const isFirst = query.cursor === undefined
  if (isFirst && next === null) return null
  return (
    <div class="actions">
      <button type="button" disabled={isFirst} onClick={() => setQuery({ cursor: undefined })}>
        First page
      </button>
      <button
        type="button"
        disabled={next === null}
        onClick={() => setQuery({ cursor: next ?? undefined })}
      >
        Next page
      </button>
    </div>
  )
}
