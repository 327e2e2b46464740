// Assembles the package `rouse`. It has the layout of this repository, with the built files of every package
// that the command line and the node use, so that paths between files are the same in both. Imports of
// `@rouse/...` become relative paths: no other package of the workspace is needed. Packages of other authors
// are ordinary dependencies, with the versions that the workspace uses.
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { root } from '../run.mjs'

const parts = [
  'apps/cli',
  'apps/broker',
  'packages/client',
  'packages/database',
  'packages/gossip',
  'packages/protocol',
  'packages/shared-state',
  'packages/sidecar',
  'packages/storage',
]

export function stageRouse(stage) {
  const manifests = new Map(parts.map((part) => [part, readJson(join(part, 'package.json'))]))
  const texts = [...manifests].flatMap(([part]) => stagePart(stage, part, manifests))
  const others = [
    'LICENSE',
    'CHANGELOG.md',
    'migrations',
    'apps/dashboard/dist',
    'apps/broker/site',
  ]
  for (const file of others) {
    cpSync(join(root, file), join(stage, file), { recursive: true })
  }
  cpSync(join(root, 'apps', 'cli', 'README.md'), join(stage, 'README.md'))
  writeJson(join(stage, 'package.json'), rouseManifest([...manifests.values()], texts))
}

/** The command line and the node do not use it, and it would need another package. */
const unused = /[/\\]packages[/\\]client[/\\]src[/\\]otel[/\\]/

/** Returns the texts of the staged modules. */
function stagePart(stage, part, manifests) {
  const { name, version, imports = {}, bin } = manifests.get(part)
  writeJson(join(stage, part, 'package.json'), { name, version, private: true, type: 'module' })
  if (bin?.rouse !== undefined) {
    cpSync(join(root, part, 'bin'), join(stage, part, 'bin'), { recursive: true })
  }
  // The folder `dist` may also have files whose sources no longer exist.
  const sources = filesIn(join(root, part, 'src')).filter((path) => !unused.test(path))
  return sources.map((path) => {
    const file = join('dist', relative(join(root, part, 'src'), path)).replace(/\.ts$/, '.js')
    const target = join(stage, part, file)
    const text = readFileSync(join(root, part, file), 'utf8').replaceAll(
      ownImport,
      (all, quote, specifier) =>
        specifier in imports
          ? `${quote}${relativePath(file, imports[specifier].node)}${quote}`
          : all,
    )
    const staged = withRelativeImports(text, join(part, file), manifests)
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, staged)
    cpSync(join(root, part, `${file}.map`), `${target}.map`)
    return staged
  })
}

/** An import by the manifest of its own package, which the manifest of the whole replaces. */
const ownImport = /(['"])(#[a-z-]+)\1/g
const workspaceImport = /((?:\bfrom|\bimport|\bresolve\(|\bimport\()\s*)(['"])(@rouse\/[^'"]+)\2/g

function withRelativeImports(text, file, manifests) {
  return text.replaceAll(workspaceImport, (_, before, quote, specifier) => {
    return `${before}${quote}${relativePath(file, targetOf(specifier, manifests))}${quote}`
  })
}

function relativePath(from, to) {
  const path = relative(dirname(from), to).replaceAll('\\', '/')
  return path.startsWith('.') ? path : `./${path}`
}

function targetOf(specifier, manifests) {
  const [scope, name, ...rest] = specifier.split('/')
  for (const [part, manifest] of manifests) {
    if (manifest.name !== `${scope}/${name}`) continue
    const entry = manifest.exports[['.', ...rest].join('/')]
    return join(part, entry.default ?? entry.import.default)
  }
  throw new Error(`${specifier} is not part of the package; add it to scripts/pack/stage-rouse.mjs`)
}

function rouseManifest(manifests, texts) {
  const { version, description, keywords, repository, license, engines } = readJson('package.json')
  const { catalog, overrides } = readWorkspace()
  /** A dependency that the build has bundled is not imported any more. */
  const isImported = (name) => texts.some((text) => new RegExp(`['"]${name}['"/]`).test(text))
  const pick = (field) =>
    Object.fromEntries(
      manifests
        .flatMap((manifest) => Object.entries(manifest[field] ?? {}))
        .filter(([name]) => !/^@(rouse|types)\//.test(name))
        .map(([name, range]) => [name, range === 'catalog:' ? catalog[name] : range])
        .toSorted(([a], [b]) => (a < b ? -1 : 1)),
    )
  return {
    name: 'rouse',
    version,
    description: `${description}: the command line and the node`,
    keywords,
    repository,
    license,
    type: 'module',
    engines,
    bin: { rouse: 'apps/cli/bin/rouse.js' },
    exports: { './package.json': './package.json' },
    // The versions that the workspace pins for everyone are pinned here by being direct dependencies.
    dependencies: {
      ...overrides,
      ...Object.fromEntries(
        Object.entries(pick('dependencies')).filter(([name]) => isImported(name)),
      ),
    },
    optionalDependencies: pick('optionalDependencies'),
  }
}

function readWorkspace() {
  const { parse } = createRequire(join(root, 'apps', 'cli', 'package.json'))('yaml')
  return parse(readFileSync(join(root, 'pnpm-workspace.yaml'), 'utf8'))
}

function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'))
}

function writeJson(path, value) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`)
}

function filesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesIn(path) : [path]
  })
}
