// A Node loader that replaces text in modules. patch-modules.mjs registers it with the list of replacements.
/** @type {{ url: string, find: string, put: string }[]} */
let patches = []

/** @param {typeof patches} data */
export function initialize(data) {
  patches = data
}

/**
 * @param {string} url
 * @param {object} context
 * @param {(url: string, context: object) => Promise<{ source?: unknown }>} nextLoad
 */
export async function load(url, context, nextLoad) {
  const wanted = patches.filter((patch) => patch.url === url)
  const loaded = await nextLoad(url, context)
  if (wanted.length === 0) return loaded
  let text = String(loaded.source)
  for (const { find, put } of wanted) {
    if (!text.includes(find)) throw new Error(`${url} does not contain: ${find}`)
    text = text.replace(find, () => put)
  }
  return { ...loaded, source: text }
}
