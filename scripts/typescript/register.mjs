// `node --import <this file> some.ts` runs TypeScript.
//
// tsx can do much more (paths, CommonJS, missing extensions), and for that it handles every module of every
// dependency. Nothing here needs this, and without tsx each process takes about half a second less CPU. `npm
// test` runs test files from a bundle; this loads the programs that they start.
import { register } from 'node:module'

register('./hooks.mjs', import.meta.url)
process.setSourceMapsEnabled(true)
