// `node --import <this file> some.test.ts` runs TypeScript.
//
// tsx can do much more (paths, CommonJS, missing extensions) and handles every module of every dependency for
// that. Nothing here needs it, and a run starts more than 200 test processes: without it each of them takes
// about half a second less CPU.
import { register } from 'node:module'

register('./hooks.mjs', import.meta.url)
process.setSourceMapsEnabled(true)
