// Builds the dashboard into dist: a page, one script and one style sheet, with relative addresses, so that it works
// under any path. File names have no hash, see apps/broker/src/routes/pages/dashboard.ts. The build fails if the files are
// larger than their budget.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'vite'

const gzippedBytesMax = 90_000
const root = dirname(dirname(fileURLToPath(import.meta.url)))

await build({
  root,
  configFile: false,
  logLevel: 'warn',
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2022',
    // An inline image would need `data:` in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: false,
    rollupOptions: {
      output: {
        entryFileNames: 'app.js',
        assetFileNames: (asset) =>
          asset.names[0]?.endsWith('.css') ? 'app.css' : '[name][extname]',
        codeSplitting: false,
      },
    },
  },
})

const dist = join(root, 'dist')
const sizes = readdirSync(dist).map((name) => [
  name,
  gzipSync(readFileSync(join(dist, name))).length,
])
const total = sizes.reduce((sum, [, size]) => sum + size, 0)
if (total > gzippedBytesMax) {
  const list = sizes.map(([name, size]) => `${name} ${size}`).join(', ')
  throw new Error(`the dashboard has ${total} bytes gzipped, more than ${gzippedBytesMax}: ${list}`)
}
