// Builds the static site: one HTML file per page, one style sheet, one script, and the index for the search.
// Nothing is loaded from elsewhere.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from '../run.mjs'
import { escapeHtml, hrefOf, readNavigation, readPages, render } from './pages.mjs'

/** Nodes serve this folder at /docs. */
export const siteFolder = join(root, 'apps', 'broker', 'site')

/** Returns the number of pages. */
export function buildSite(folder) {
  const pages = readPages()
  const names = new Set(pages.map(({ name }) => name))
  const navigation = readNavigation()
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  rmSync(folder, { recursive: true, force: true })
  const index = []
  for (const page of pages) {
    const { html, sections } = render(page, names)
    const file = hrefOf('x', page.name)
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), pageHtml({ page, html, navigation, version }))
    for (const { id, label, text } of sections) {
      index.push({ page: page.title, href: `${file}#${id}`, label, text: squeeze(text) })
    }
  }
  writeFileSync(join(folder, 'search.json'), JSON.stringify(index))
  for (const asset of ['site.css', 'search.js']) {
    copyFileSync(new URL(asset, import.meta.url), join(folder, asset))
  }
  return pages.length
}

function pageHtml({ page, html, navigation, version }) {
  const base = '../'.repeat(page.name.split('/').length - 1)
  const sections = navigation.map(({ heading, links }) => {
    const items = links.map(({ label, name }) => {
      const here = name === page.name ? ' aria-current="page"' : ''
      return `<li><a href="${hrefOf(page.name, name)}"${here}>${escapeHtml(label)}</a></li>`
    })
    return `<h2>${escapeHtml(heading)}</h2><ul>${items.join('')}</ul>`
  })
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeHtml(page.title)} · Rouse</title>
<link rel="stylesheet" href="${base}site.css">
<script defer src="${base}search.js" data-base="${base}"></script>
<header>
<a href="${base}index.html">Rouse ${escapeHtml(version)}</a>
<input type="search" placeholder="Search" aria-label="Search">
</header>
<nav>${sections.join('\n')}</nav>
<main>
<ol id="results" hidden></ol>
<article>
${html}</article>
</main>
</html>
`
}

/** Without the marks of Markdown, so that a result can show a part of it. */
function squeeze(text) {
  return text
    .replaceAll(/```[^\n]*/g, ' ')
    .replaceAll(/\]\([^)]*\)/g, ' ')
    .replaceAll(/[|*#`[\]]|-{3,}/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
}
