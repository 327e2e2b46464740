// A table whose rows are in the document only while they are visible, so that 10,000 rows cost as much as 40. Rows
// have one height. Columns are aligned by a grid; roles tell assistive technology that it is a table.
import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { Empty } from './notice.tsx'

export interface Column<Row> {
  readonly key: string
  readonly title: string
  /** A track of the grid, such as `1fr` or `6rem`. */
  readonly width: string
  /** On narrow screens, where seven tenths of the width do not fit the content. */
  readonly narrowWidth?: string
  readonly isNumber?: boolean
  readonly cell: (row: Row) => ComponentChildren
  /** Present if the table can be sorted by this column; larger values first. */
  readonly sortBy?: (row: Row) => number | string
  /** Left out on narrow screens. */
  readonly isExtra?: boolean
}

interface TableProps<Row> {
  readonly label: string
  /** What an empty table lacks, such as `queues`; the label if absent. */
  readonly things?: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  readonly empty: ComponentChildren
  readonly sort?: string | undefined
  readonly onSort?: (key: string) => void
  readonly onOpen?: (row: Row) => void
  /** Rows that are visible at most; the others scroll. */
  readonly rowsMax?: number
}

const rowPx = 32
const overscan = 8
const drawnMax = 90

export function Table<Row>(props: TableProps<Row>) {
  const { label, things = label.toLowerCase(), columns, rows, keyOf, empty, rowsMax = 18 } = props
  const { onOpen } = props
  const { scroller, first, last, onScroll } = useWindow(rows.length, rowsMax)
  if (rows.length === 0) return <Empty title={`No ${things}`}>{empty}</Empty>
  const visible = rows.slice(first, last)
  return (
    <div class="table" role="table" aria-label={label} aria-rowcount={rows.length}>
      <Head {...props} />
      <div
        class="table-body"
        ref={scroller}
        onScroll={onScroll}
        style={{ maxHeight: `${rowsMax * rowPx}px` }}
        role="rowgroup"
        tabIndex={0}
        onKeyDown={moveFocus}
      >
        <div style={{ height: `${rows.length * rowPx}px`, position: 'relative' }}>
          <div style={{ transform: `translateY(${first * rowPx}px)` }}>
            {visible.map((row, i) => (
              <div
                key={keyOf(row)}
                class={`row ${onOpen === undefined ? '' : 'can-open'}`}
                role="row"
                aria-rowindex={first + i + 1}
                tabIndex={onOpen === undefined ? undefined : 0}
                onClick={
                  onOpen === undefined ? undefined : (event) => openFrom(event, () => onOpen(row))
                }
                style={{ gridTemplateColumns: tracksOf(columns) }}
              >
                {columns.map((column) => (
                  <div key={column.key} role="cell" class={classOf(column)}>
                    {column.cell(row)}
                  </div>
                ))}
              </div>
            ))}
          </div>
        </div>
      </div>
    </div>
  )
}

/** The rows that are drawn: those in view and a few around them. */
function useWindow(length: number, rowsMax: number) {
  const scroller = useRef<HTMLDivElement>(null)
  const [first, setFirst] = useState(0)
  const onScroll = useCallback(() => {
    const top = scroller.current?.scrollTop ?? 0
    setFirst(Math.max(0, Math.floor(top / rowPx) - overscan))
  }, [])
  // The list may have become shorter.
  useEffect(onScroll, [length, onScroll])
  const drawn = Math.min(rowsMax + 2 * overscan, drawnMax)
  const start = Math.min(first, Math.max(0, length - drawn))
  return { scroller, first: start, last: Math.min(start + drawn, length), onScroll }
}

function Head<Row>({ columns, sort, onSort }: TableProps<Row>) {
  return (
    <div class="row head" role="row" style={{ gridTemplateColumns: tracksOf(columns) }}>
      {columns.map((column) => {
        const isSorted = sort === column.key
        return (
          <div
            key={column.key}
            role="columnheader"
            class={classOf(column)}
            aria-sort={isSorted ? 'descending' : undefined}
          >
            {column.sortBy === undefined || onSort === undefined ? (
              column.title
            ) : (
              <button type="button" class="sort" onClick={() => onSort(column.key)}>
                {column.title}
                {isSorted ? ' ↓' : ''}
              </button>
            )}
          </div>
        )
      })}
    </div>
  )
}

export function sorted<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  sort: string | undefined,
): readonly Row[] {
  const by = columns.find(({ key }) => key === sort)?.sortBy
  if (by === undefined) return rows
  const keyed = rows.map((row) => ({ row, value: by(row) }))
  const isText = typeof keyed[0]?.value === 'string'
  // Text from A to Z, numbers from large to small.
  keyed.sort((a, b) => (isText ? (a.value < b.value ? -1 : 1) : Number(b.value) - Number(a.value)))
  return keyed.map(({ row }) => row)
}

const narrow = matchMedia('(max-width: 700px)')

/** Columns that are hidden on narrow screens have no track there, and the others are narrower. */
function tracksOf<Row>(columns: readonly Column<Row>[]): string {
  if (!narrow.matches) {
    return columns
      .map(({ width }) => (width.endsWith('fr') ? `minmax(6rem, ${width})` : width))
      .join(' ')
  }
  return columns
    .filter(({ isExtra = false }) => !isExtra)
    .map(({ width, narrowWidth }) => {
      const track = narrowWidth ?? (width.endsWith('fr') ? width : `calc(${width} * 0.7)`)
      return track.endsWith('fr') ? `minmax(0, ${track})` : track
    })
    .join(' ')
}

function classOf<Row>({ isNumber = false, isExtra = false }: Column<Row>): string {
  return `cell ${isNumber ? 'number' : ''} ${isExtra ? 'extra' : ''}`
}

/** A click on a link or a button inside the row is not a click on the row. */
function openFrom(event: Event, open: () => void): void {
  const isInner = (event.target as Element).closest('a, button, input') !== null
  if (!isInner && getSelection()?.toString() === '') open()
}

/** j and k, or the arrows, move between rows; Enter opens one. */
function moveFocus(event: KeyboardEvent): void {
  const row = (event.target as Element).closest<HTMLElement>('.row')
  const next =
    event.key === 'j' || event.key === 'ArrowDown'
      ? row?.nextElementSibling
      : event.key === 'k' || event.key === 'ArrowUp'
        ? row?.previousElementSibling
        : undefined
  if (next instanceof HTMLElement) {
    event.preventDefault()
    next.focus()
  }
  if (event.key === 'Enter' && event.target === row) row?.click()
}
