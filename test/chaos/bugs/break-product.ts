// Puts seeded bugs into a cluster before it starts.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { ChaosClusterOptions } from '../cluster/chaos-cluster.ts'
import { broken, type Replacement } from './bug.ts'

type Breaking = Pick<ChaosClusterOptions, 'nodeEnv' | 'afterMigrate'>

const root = new URL('../../../', import.meta.url)
const hook = new URL('patch-modules.mjs', import.meta.url)

export function breakProduct(replaces: readonly Replacement[]): Breaking {
  const modules = replaces.filter(({ file }) => file.endsWith('.js'))
  const functions = replaces.filter(({ file }) => file.endsWith('.sql'))
  return {
    ...(modules.length === 0 ? {} : { nodeEnv: breakModules(modules) }),
    ...(functions.length === 0
      ? {}
      : { afterMigrate: (url: string) => breakFunctions(url, functions) }),
  }
}

/** The patched text of each file that a bug changes. Throws if the text to replace is missing. */
export async function brokenFiles(replaces: readonly Replacement[]): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  for (const replacement of replaces) {
    const { file } = replacement
    const text = texts.get(file) ?? (await readFile(fileURLToPath(new URL(file, root)), 'utf8'))
    texts.set(file, broken(text, replacement))
  }
  return texts
}

function breakModules(replaces: readonly Replacement[]): Record<string, string> {
  const patches = replaces.map(({ file, find, put }) => ({
    url: new URL(file, root).href,
    find,
    put,
  }))
  return { NODE_OPTIONS: `--import=${hook.href}`, CHAOS_PATCHES: JSON.stringify(patches) }
}

async function breakFunctions(url: string, replaces: readonly Replacement[]): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    for (const text of (await brokenFiles(replaces)).values()) await client.query(text)
  } finally {
    await client.end()
  }
}
