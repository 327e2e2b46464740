// The pages of the documentation, as tests read them.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../..', import.meta.url))

export interface Block {
  readonly line: number
  /** The first word after the fence. */
  readonly language: string
  /** The rest of that line: `test`, or why the block is not run. */
  readonly note: string
  readonly code: string
}

export interface Page {
  /** Relative to the root of the repository. */
  readonly path: string
  readonly text: string
}

/** The Markdown files for users and contributors, except for the changelog. */
export function readPages(): Page[] {
  const others = ['README.md', 'cluster-config/README.md']
  return [...markdownFiles('docs'), ...others].map((path) => ({
    path,
    text: readFileSync(join(root, path), 'utf8'),
  }))
}

function markdownFiles(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`
      if (entry.isDirectory()) return markdownFiles(path)
      return entry.name.endsWith('.md') ? [path] : []
    })
    .sort()
}

/** The fenced blocks of a page. */
export function blocksOf({ text }: Page): Block[] {
  const blocks: Block[] = []
  for (const found of text.matchAll(/^```(\w*)[ ]*(.*)\n([\s\S]*?)^```$/gm)) {
    const [, language = '', note = '', code = ''] = found
    blocks.push({ line: text.slice(0, found.index).split('\n').length, language, note, code })
  }
  return blocks
}

/** The text without blocks and code. */
export function proseOf({ text }: Page): string {
  return text
    .replaceAll(/^```[\s\S]*?^```$/gm, blank)
    .replaceAll(/^ {4}.*$/gm, blank)
    .replaceAll(/`[^`]*`/g, blank)
    .replaceAll(/\]\([^)]*\)/g, (link) => ']'.padEnd(link.length))
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, ' ')
}

/** The links of a page to files, with the anchor. */
export function linksOf(page: Page) {
  return [...page.text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)/g)].map(
    ([, path = '', anchor]) => ({
      target: path === '' ? page.path : relative(root, join(root, dirname(page.path), path)),
      anchor,
    }),
  )
}

/** The anchors that GitHub and the site give to the headings of a page. */
export function anchorsOf({ text }: Page): Set<string> {
  const anchors = new Set<string>()
  const blocks = text.replaceAll(/^```[\s\S]*?^```$/gm, '')
  for (const [, heading = ''] of blocks.matchAll(/^#+ (.*)$/gm)) {
    const base = heading
      .replaceAll(/[`*]/g, '')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(/\s/g, '-')
    let anchor = base
    for (let i = 1; anchors.has(anchor); i += 1) anchor = `${base}-${i}`
    anchors.add(anchor)
  }
  return anchors
}
