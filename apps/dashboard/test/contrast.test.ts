// Text has a contrast of at least 4.5:1 on every background it is used on (WCAG AA), in both themes.
import { readFileSync } from 'node:fs'
import { test } from 'tap'

const css = readFileSync(new URL('../src/style.css', import.meta.url), 'utf8')
const contrastMin = 4.5

const pairs = [
  ['text', ['back', 'surface', 'hover', 'code', 'warn-back', 'bad-back']],
  ['muted', ['back', 'surface', 'hover', 'code', 'bad-back']],
  ['accent', ['back', 'surface', 'hover', 'warn-back', 'bad-back']],
  ['accent-text', ['accent']],
  ['good', ['surface', 'good-back']],
  ['warn', ['surface', 'warn-back']],
  ['bad', ['surface', 'bad-back']],
] as const

for (const [theme, start] of [
  ['light', ':root {'],
  ['dark', ':root[data-theme="dark"] {'],
] as const) {
  test(`the ${theme} colours can be read`, async (t) => {
    const colors = colorsAfter(start)
    for (const [text, backs] of pairs) {
      for (const back of backs) {
        const ratio = contrast(colors.get(text) ?? '', colors.get(back) ?? '')
        t.ok(ratio >= contrastMin, `${text} on ${back}: ${ratio.toFixed(2)}`)
      }
    }
  })
}

test('the colours of a dark system are those of the dark theme', async (t) => {
  t.same(
    colorsAfter(':root:not([data-theme="light"]) {'),
    colorsAfter(':root[data-theme="dark"] {'),
  )
})

function colorsAfter(start: string): Map<string, string> {
  const from = css.indexOf(start)
  const block = css.slice(from, css.indexOf('}', from))
  return new Map(
    [...block.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map(([, name = '', hex = '']) => [
      name,
      hex,
    ]),
  )
}

function contrast(a: string, b: string): number {
  const [light = 0, dark = 0] = [luminance(a), luminance(b)].toSorted((x, y) => y - x)
  return (light + 0.05) / (dark + 0.05)
}

function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
