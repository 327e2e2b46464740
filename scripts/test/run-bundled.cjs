// Runs one file of the bundle of all tests: `node main.cjs some.test.ts`.
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const { runBundle } = require('./code-cache.cjs')

const loader = path.join(__dirname, '../typescript/register.mjs')
/** What Node sets for a module that still waits at its top when nothing is left to do. */
const unfinished = 13

/** For modules that cannot be required: a script from the code cache cannot import. */
globalThis.importModule = (file) => import(pathToFileURL(file).href)

exports.runTestFile = (script) => {
  const [, , file] = process.argv
  // As if the file itself had been started; tests also start TypeScript programs with the same options.
  process.argv.splice(1, 2, path.resolve(file))
  process.execArgv.push(`--import=${pathToFileURL(loader).href}`)
  let isLoaded = false
  process.once('exit', (code) => {
    if (code === 0 && !isLoaded) process.exitCode = unfinished
  })
  const { tests } = runBundle(script, roleOf(file))
  void tests[`./${file}`]().then(() => {
    isLoaded = true
  })
}

/** Files of one folder use much the same code, so they share a cache. */
function roleOf(file) {
  const [top, name] = file.split('/')
  return `${top}-${name.replaceAll(/\W/g, '-')}`
}
