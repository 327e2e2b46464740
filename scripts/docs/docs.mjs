// `npm run docs [-- --check] [-- --out FOLDER]`: writes the generated pages of docs/reference, and the static site
// that nodes serve at /docs. With --check it writes nothing, and fails if a generated page is out of date.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../run.mjs'
import { setup } from '../setup.mjs'
import { cliReference } from './cli-reference.mjs'
import { httpReference } from './http-reference.mjs'
import { sdkReference } from './sdk-reference.mjs'
import { buildSite, siteFolder } from './site.mjs'
import { sqlReference } from './sql-reference.mjs'

const { values } = parseArgs({ options: { check: { type: 'boolean' }, out: { type: 'string' } } })
if (!values.check) await setup()

const generated = {
  'docs/reference/cli.md': await cliReference(),
  'docs/reference/http-routes.md': await httpReference(),
  'docs/reference/sdk.md': sdkReference(),
  'docs/reference/sql.md': await sqlReference(),
}
if (values.check) {
  const stale = Object.keys(generated).filter((path) => textOf(path) !== generated[path])
  if (stale.length > 0) {
    console.error(`out of date: ${stale.join(', ')}; run: npm run docs`)
    process.exit(1)
  }
} else {
  for (const [path, text] of Object.entries(generated)) writeFileSync(join(root, path), text)
  const folder = values.out ?? siteFolder
  console.log(`${buildSite(folder)} pages in ${folder}`)
}

function textOf(path) {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    return ''
  }
}
