// The pages of the documentation, in the order of docs/README.md.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { Marked } from 'marked'
import { root } from '../run.mjs'

const docs = join(root, 'docs')

/** Every page: its path in docs without `.md`, its title and its text. */
export function readPages() {
  return markdownFiles(docs).map((path) => {
    const text = readFileSync(join(docs, path), 'utf8')
    return { name: path.replace(/\.md$/, ''), text, title: /^# (.*)$/m.exec(text)?.[1] ?? path }
  })
}

/** The navigation: the headings of docs/README.md with the links below each. */
export function readNavigation() {
  const text = readFileSync(join(docs, 'README.md'), 'utf8')
  return text
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      heading: section.slice(0, section.indexOf('\n')),
      links: [...section.matchAll(/\[([^\]]+)\]\(([\w./-]+)\.md\)/g)].map(([, label, name]) => ({
        label,
        name,
      })),
    }))
}

function markdownFiles(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return markdownFiles(path)
      return entry.name.endsWith('.md') ? [relative(docs, path)] : []
    })
    .sort((a, b) => (a < b ? -1 : 1))
}

/** The HTML of a page, and its sections with the text of each for the search. */
export function render({ name, text }, names) {
  const sections = sectionsOf(text)
  let headings = 0
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth }) {
        const { id } = sections[headings]
        headings += 1
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const label = this.parser.parseInline(tokens)
        const target = targetOf(href, name, names)
        return target === undefined ? label : `<a href="${target}">${label}</a>`
      },
      code({ text: code, lang = '' }) {
        const kind = lang === 'output' ? ' class="output"' : ''
        return `<pre${kind}><code>${escapeHtml(code)}</code></pre>\n`
      },
    },
  })
  return { html: marked.parse(text), sections }
}

/** A section is a heading and what follows it. */
export function sectionsOf(text) {
  const used = new Map()
  const sections = []
  for (const token of new Marked().lexer(text)) {
    if (token.type === 'heading') {
      const label = token.text.replaceAll(/[`*]/g, '')
      sections.push({ id: anchorOf(label, used), label, text: '' })
    } else if (sections.length > 0) sections.at(-1).text += ` ${token.raw}`
  }
  return sections
}

/** As GitHub makes them. */
function anchorOf(label, used) {
  const base = label
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')
  const count = used.get(base) ?? 0
  used.set(base, count + 1)
  return count === 0 ? base : `${base}-${count}`
}

/** Undefined for files of the repository that are not part of the site. */
function targetOf(href, name, names) {
  if (/^(https?:|#)/.test(href)) return href
  const [path, anchor] = href.split('#')
  const target = join(dirname(name), path.replace(/\.md$/, ''))
  if (!path.endsWith('.md') || !names.has(target)) return undefined
  return `${hrefOf(name, target)}${anchor === undefined ? '' : `#${anchor}`}`
}

/** From one page to another. */
export function hrefOf(from, to) {
  return `${relative(dirname(from), to) || to}.html`.replaceAll('README.html', 'index.html')
}

export function escapeHtml(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
