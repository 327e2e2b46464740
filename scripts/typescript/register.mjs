// `node --import <this file> some.test.ts` runs TypeScript.
//
// tsx can do much more (paths, CommonJS, missing extensions), and for that it handles every module of every
// dependency. Nothing here needs this, and a run starts more than 200 test processes: without tsx each of
// them takes about half a second less CPU.
import { register } from 'node:module'

register('./hooks.mjs', import.meta.url)
process.setSourceMapsEnabled(true)
