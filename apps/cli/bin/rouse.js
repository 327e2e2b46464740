#!/usr/bin/env node
// Committed, so that package managers find it before the first build.
import { existsSync } from 'node:fs'

if (existsSync(new URL('../dist/main.js', import.meta.url))) await import('../dist/main.js')
else {
  process.stderr.write('rouse: not built yet; run: npm run setup\n')
  process.exitCode = 1
}
