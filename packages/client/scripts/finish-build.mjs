// The last step of the build, after tsc has written ES modules to dist and CommonJS modules to dist/cjs.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const dist = fileURLToPath(new URL('../dist', import.meta.url))
const cjs = join(dist, 'cjs')

// tsc leaves the output of sources that no longer exist.
for (const path of filesIn(dist)) {
  const name = relative(dist, path).replace(/^cjs[/\\]/, '')
  const source = join(dist, '..', 'src', name.replace(/(\.d\.ts|\.js)(\.map)?$/, '.ts'))
  if (!existsSync(source) && name !== 'package.json') rmSync(path)
}

// The nearest package.json decides which module system a file has. It also hides the `imports` of the
// package, so `#transport` and `#sql` become the files for Node. Bundlers for browsers use the ES modules
// even where a program calls `require`.
writeFileSync(join(cjs, 'package.json'), '{ "type": "commonjs" }\n')
rewrite(join(cjs, 'rouse.js'), /require\("#transport"\)/, 'require("./http/node-transport.js")')
rewrite(join(cjs, 'queue.js'), /require\("#sql"\)/, 'require("./sql/push-in.js")')
rewrite(join(cjs, 'consume/job-runner.js'), /require\("#sql"\)/, 'require("../sql/push-in.js")')
for (const path of filesIn(cjs)) {
  if (path.endsWith('.js') && /require\("#/.test(readFileSync(path, 'utf8')))
    throw new Error(`${path} imports by the manifest of the package, which CommonJS does not see`)
}

/** tsc keeps `./file.ts` in declarations, although only `file.js` and `file.d.ts` are there. */
for (const path of filesIn(dist)) {
  if (path.endsWith('.d.ts'))
    rewrite(path, /((?:from|import\() ?['"]\.[^'"]*)\.ts(['"])/g, '$1.js$2')
}

function rewrite(path, pattern, replacement) {
  const text = readFileSync(path, 'utf8')
  const changed = text.replace(pattern, replacement)
  if (changed !== text) writeFileSync(path, changed)
}

function filesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesIn(path) : [path]
  })
}
