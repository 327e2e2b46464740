import { fileURLToPath } from 'node:url'

/**
 * The built program of a node, for tests: it starts in a third of the time that the sources take. `npm test`
 * names a bundle of it (scripts/test/bundle-node.mjs), which starts faster still.
 */
export function builtNode(): string {
  return (
    process.env.ROUSE_TEST_NODE ??
    fileURLToPath(new URL('../../../apps/broker/dist/main.js', import.meta.url))
  )
}
