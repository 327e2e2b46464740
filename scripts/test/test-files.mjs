// Which test files there are, in which order they start, and which of them `npm test -- --quick` runs. If a
// list below names a path without test files, every run fails.
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { root } from '../run.mjs'

/**
 * Long files that compare results and not durations, and that mostly wait. They run one after the other, in
 * this order, in addition to the usual number of files at once.
 */
const untimed = [
  'test/model/model.test.ts',
  'apps/broker/test/dev/dev-cluster.test.ts',
  'apps/broker/test/cluster/node-ids.test.ts',
  'apps/broker/test/database/restored-copy.test.ts',
  // The last one: it must do all its faults in its time, and short files leave it more CPU than long ones.
  'test/chaos/gate.test.ts',
]

/** Files that start first, because a long file that starts last runs alone. The order within the list does
 * not matter much; packages, whose files are short, come last. */
const long = [
  'apps/dashboard/test/dashboard.test.ts',
  'test/docs/blocks.test.ts',
  'apps/broker/test/cluster/balancers.test.ts',
  'apps/broker/test/observe/metrics.test.ts',
  'apps/broker/test/observe/queue-list.test.ts',
  'apps/broker/test/auth/matrix.test.ts',
  'apps/broker/test/wait/wakes.test.ts',
  'apps/broker/test/scheduler/retention.test.ts',
  'apps/broker/test/cluster/wakes.test.ts',
  'apps/broker/test/cluster/wake-costs.test.ts',
  'apps/broker/test/cluster/restarts.test.ts',
  'apps/broker/test/cluster/unannounced-commits.test.ts',
  'apps/broker/test/database/postgres-hosts.test.ts',
  'apps/cli/test/doctor.test.ts',
  'packages/gossip/test/simulation/simulation.test.ts',
  'test/chaos/bugs/caught.test.ts',
]

/**
 * Whether `--quick` runs the files of a path; the longest path that matches decides, so that a new file is
 * treated like its folder. Left out are tests that start whole clusters, kill processes or wait for real
 * time.
 */
const quick = {
  'apps/broker/test': false,
  'apps/broker/test/cluster/hint-codec.test.ts': true,
  'apps/broker/test/config': true,
  'apps/broker/test/http': true,
  'apps/broker/test/http/tls.test.ts': false,
  'apps/broker/test/ipc.test.ts': true,
  'apps/broker/test/routes': true,
  'apps/broker/test/routes/api-docs.test.ts': false,
  'apps/broker/test/routes/dead-letters.test.ts': false,
  'apps/broker/test/routes/failure-options.test.ts': false,
  'apps/broker/test/routes/message/results.test.ts': false,
  'apps/broker/test/routes/schedules.test.ts': false,
  'apps/broker/test/routes/why.test.ts': false,
  'apps/broker/test/scheduler/cron-ticks.test.ts': true,
  'apps/broker/test/wait': true,
  'apps/broker/test/wait/rates.test.ts': false,
  'apps/broker/test/wait/wakes.test.ts': false,
  'apps/broker/test/worker': true,
  'apps/cli/test': false,
  'apps/dashboard/test': false,
  packages: true,
  'packages/client/test': false,
  'packages/client/test/consume/backlog.test.ts': true,
  'packages/client/test/duration.test.ts': true,
  'packages/client/test/http': true,
  'packages/client/test/push': true,
  'packages/database/test/embedded': false,
  'packages/database/test/hosts/lost-flows.test.ts': false,
  'packages/gossip/test/simulation/simulation.test.ts': false,
  'packages/gossip/test/transport/processes.test.ts': false,
  'packages/sidecar/test/writes/locked-targets.test.ts': false,
  'packages/testkit/test': false,
  test: false,
  'test/chaos/checkers': true,
  'test/npm-test.test.ts': true,
  'test/tidy.test.ts': true,
}

/** Its message is for the user. */
export class TestFilesError extends Error {}

export function allTestFiles() {
  const packages = ['apps', 'packages'].flatMap((top) =>
    readdirSync(join(root, top)).map((name) => `${top}/${name}/test`),
  )
  return ['test', ...packages].flatMap((folder) => testFilesIn(folder))
}

export function quickTestFiles() {
  const paths = Object.keys(quick).toSorted((a, b) => b.length - a.length)
  return allTestFiles().filter((file) => quick[paths.find((path) => isIn(file, path))])
}

/** The given files, and all test files of the given folders. */
export function namedTestFiles(names) {
  return names.flatMap((name) => {
    const path = relative(root, resolve(root, name))
    if (!existsSync(join(root, path))) throw new TestFilesError(`there is no file ${path}`)
    const files = statSync(join(root, path)).isDirectory() ? testFilesIn(path) : [path]
    if (files.length === 0) throw new TestFilesError(`the folder ${path} has no test files`)
    return files
  })
}

export function isUntimed(file) {
  return untimed.includes(file)
}

export function inStartOrder(files) {
  const first = [...untimed, ...long]
  return [
    ...first.filter((file) => files.includes(file)),
    ...files.filter((file) => !first.includes(file)),
  ]
}

export function checkLists() {
  const files = allTestFiles()
  const quickPaths = Object.keys(quick)
  const stale = [...untimed, ...long, ...quickPaths].filter(
    (path) => !files.some((file) => isIn(file, path)),
  )
  if (stale.length > 0) {
    throw new TestFilesError(
      `scripts/test/test-files.mjs names paths without tests: ${stale.join(', ')}`,
    )
  }
  const unlisted = files.filter((file) => !quickPaths.some((path) => isIn(file, path)))
  if (unlisted.length > 0) {
    throw new TestFilesError(`scripts/test/test-files.mjs does not cover ${unlisted.join(', ')}`)
  }
}

function isIn(file, path) {
  return file === path || file.startsWith(`${path}/`)
}

function testFilesIn(folder) {
  if (!existsSync(join(root, folder))) return [] // a package without tests
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : testFilesIn(path)
    return entry.name.endsWith('.test.ts') ? [path] : []
  })
}
