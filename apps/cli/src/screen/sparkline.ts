const bars = '▁▂▃▄▅▆▇█'

/** The last values as bars, the newest on the right; the highest bar is the maximum. */
export function sparkline(values: readonly number[], width: number): string {
  const shown = values.slice(-width)
  const top = Math.max(...shown, 0)
  const text = shown.map((value) => {
    const level = top === 0 ? 0 : Math.ceil((value / top) * (bars.length - 1))
    return bars[Math.max(0, level)]
  })
  return text.join('').padStart(width)
}
