// Runs a bundled CommonJS script with V8's code cache, so that a process does not compile what an earlier one
// has compiled. Node 20 offers this only for scripts, not for modules.
const { createHash } = require('node:crypto')
const { readFileSync, renameSync, writeFileSync } = require('node:fs')
const { createRequire, wrap } = require('node:module')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const { Script } = require('node:vm')

// pg looks at it to find out where it runs. Without it, in Node 20, it creates a Response instead, for which
// Node loads the whole of fetch: 30 ms of CPU.
globalThis.navigator ??= { userAgent: `Node.js/${process.versions.node.split('.')[0]}` }

/**
 * Returns the exports of the bundle. The first process of a role that exits in an orderly way writes the cache of
 * that role, with all functions that it has called. V8 rejects a cache of other flags or another version.
 */
exports.runBundle = (file, role) => {
  const flags = createHash('sha256').update([process.version, ...process.execArgv].join(' '))
  const cachePath = `${file}.${role}.${flags.digest('hex').slice(0, 16)}.cache`
  const cachedData = readCache(cachePath)
  // The bundle is ASCII; latin1 is the fastest way to read it.
  const script = new Script(wrap(readFileSync(file, 'latin1')), {
    filename: file,
    ...(cachedData && { cachedData }),
  })
  if (cachedData === undefined) {
    process.once('exit', () => writeCache(cachePath, script.createCachedData()))
  }
  const module = { exports: {} }
  script.runInThisContext()(module.exports, createRequire(file), module, file, path.dirname(file))
  return module.exports
}

/** `import.meta.resolve` of a module at `url`. */
exports.resolveFrom = (url, specifier) => pathToFileURL(createRequire(url).resolve(specifier)).href

function readCache(cachePath) {
  try {
    return readFileSync(cachePath)
  } catch {
    return undefined // no process has written it yet
  }
}

/** Other processes read the folder, so the file appears complete. */
function writeCache(cachePath, data) {
  const draft = `${cachePath}.${process.pid}`
  try {
    writeFileSync(draft, data)
    renameSync(draft, cachePath)
  } catch {
    // The folder is gone, or the disk is full: later processes run without a cache.
  }
}
