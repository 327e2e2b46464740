// The examples of this repository and the first screen of README.md, run with the packed packages.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../run.mjs'

/** Programs of test/examples; `prints` is in their output. */
export const examples = [
  { name: 'outbox', args: ({ url, databaseUrl }) => [url, databaseUrl], prints: 'welcome, ann' },
  { name: 'cron', args: ({ url }) => [url], prints: 'figures for ' },
  { name: 'retries', args: ({ url }) => [url], prints: 'good completed {"receipt":"R-1"' },
  { name: 'testing', args: () => [], prints: 'reminded ann after a day' },
]

/** What the examples import, and what runs them, in the versions of the workspace. */
export function exampleDependencies() {
  const { devDependencies } = readJson('package.json')
  const { devDependencies: own } = readJson('test/package.json')
  const catalog = readFileSync(join(root, 'pnpm-workspace.yaml'), 'utf8')
  const pinned = (name) => new RegExp(`"?${name}"?: (\\S+)`).exec(catalog)?.[1]
  return [
    `tsx@${devDependencies.tsx}`,
    `kysely@${own.kysely}`,
    `pg@${pinned('pg')}`,
    `@types/pg@${pinned('@types/pg')}`,
  ]
}

export async function runExample(consumer, { name, args, prints }) {
  const folder = 'examples'
  const file = join(folder, `${name}.ts`)
  consumer.write(file, readFileSync(join(root, 'test', 'examples', `${name}.ts`), 'utf8'))
  consumer.write(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable'],
    module: 'nodenext',
    strict: true,
    noEmit: true,
    types: ['node'],
  }
  const config = join(folder, `${name}.tsconfig.json`)
  consumer.write(config, JSON.stringify({ compilerOptions, files: [`${name}.ts`] }))
  await consumer.runTool('tsc', ['-p', config])
  const printed = await consumer.run(process.execPath, ['--import', 'tsx', file, ...args(consumer)])
  if (!printed.includes(prints)) throw new Error(`printed ${JSON.stringify(printed)}`)
}

/** The commands of the section "First message", with the address of the cluster instead of the usual one. */
export async function firstScreen(consumer) {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const [, section = ''] = /\n## First message\n(.*?)\nThe dashboard /s.exec(readme) ?? []
  const script = section
    .split('\n')
    .filter((line) => line.startsWith('    '))
    .map((line) => line.slice(4).replaceAll('http://127.0.0.1:4600', consumer.url))
    .join('\n')
  consumer.write('first-screen.sh', `set -e\n${script}\n`)
  const env = { ROUSE_URL: consumer.url }
  const printed = await consumer.run('bash', ['first-screen.sh'], { env })
  for (const part of ['"status":"queued"', '"n":1', '"n":2', 'hello', 'got { n: 3 }']) {
    if (!printed.includes(part)) throw new Error(`${part} is missing in ${printed}`)
  }
}

function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'))
}
