// A Node loader that makes each function of the sidecar report its caller on entry.
import ts from 'typescript'

export async function load(url, context, nextLoad) {
  const loaded = await nextLoad(url, context)
  if (!/packages\/sidecar\/dist\/.*\.js$/.test(url)) return loaded
  return { ...loaded, source: instrumented(String(loaded.source)) }
}

const report = 'globalThis.rouseShapeEnter();'

function instrumented(text) {
  const file = ts.createSourceFile('module.js', text, ts.ScriptTarget.Latest, true)
  const insertions = []
  const visit = (node) => {
    if (ts.isFunctionLike(node) && node.body !== undefined) insertions.push(...entryOf(node))
    ts.forEachChild(node, visit)
  }
  visit(file)
  insertions.sort((one, other) => other.at - one.at)
  return insertions.reduce((done, { at, put }) => done.slice(0, at) + put + done.slice(at), text)
}

function entryOf({ body, kind }) {
  if (ts.isBlock(body)) {
    // In the constructor of a derived class nothing may come before super().
    if (kind === ts.SyntaxKind.Constructor) return [{ at: body.getEnd() - 1, put: report }]
    return [{ at: body.getStart() + 1, put: report }]
  }
  return [
    { at: body.getStart(), put: `(globalThis.rouseShapeEnter(), ` },
    { at: body.getEnd(), put: ')' },
  ]
}
