// Removes the types of `.ts` files with the esbuild of tsx, and caches the results: one file per source.
import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const cache = fileURLToPath(new URL('../../node_modules/.cache/rouse-typescript', import.meta.url))
const options = { loader: 'ts', format: 'esm', target: 'node20', sourcemap: 'inline' }
const tsxEntry = createRequire(import.meta.url).resolve('tsx')
const esbuildEntry = createRequire(tsxEntry).resolve('esbuild')

export async function load(url, context, nextLoad) {
  if (!url.endsWith('.ts')) return nextLoad(url, context)
  const path = fileURLToPath(url)
  const text = readFileSync(path, 'utf8')
  const entry = join(cache, hashOf(path))
  // Includes the path of esbuild, because it contains the version.
  const state = hashOf(JSON.stringify([options, esbuildEntry, path, text]))
  const source = readEntry(entry, state) ?? (await transform(path, text, entry, state))
  return { format: 'module', source, shortCircuit: true }
}

/** The first line of a cache entry is a hash of everything that determines its content. */
function readEntry(entry, state) {
  try {
    const cached = readFileSync(entry, 'utf8')
    return cached.startsWith(`${state}\n`) ? cached.slice(state.length + 1) : undefined
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
    return undefined
  }
}

/** Writes a draft and renames it when it is complete, because other processes read the cache. */
async function transform(path, text, entry, state) {
  const { default: esbuild } = await import(pathToFileURL(esbuildEntry).href)
  const { code } = await esbuild.transform(text, { ...options, sourcefile: path })
  mkdirSync(cache, { recursive: true })
  const draft = `${entry}.${randomUUID()}`
  writeFileSync(draft, `${state}\n${code}`)
  renameSync(draft, entry)
  return code
}

function hashOf(text) {
  return createHash('sha256').update(text).digest('hex')
}
