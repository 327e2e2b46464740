// `npm run test:balancers`: haproxy and nginx with the files of cluster-config before three nodes, with polls of
// 60 s. Unlike `npm test`, it fails if neither is installed.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { root } from './run.mjs'

const folders = (process.env.PATH ?? '').split(':').concat('/usr/sbin', '/usr/local/sbin')
const installed = ['haproxy', 'nginx'].filter((name) =>
  folders.some((folder) => existsSync(`${folder}/${name}`)),
)
if (installed.length === 0) {
  console.error('neither haproxy nor nginx is installed (Debian: apt-get install haproxy nginx)')
  process.exit(1)
}
const { status } = spawnSync(
  process.execPath,
  ['scripts/test.mjs', 'apps/broker/test/cluster/balancers.test.ts'],
  { cwd: root, stdio: 'inherit', env: { ROUSE_TEST_POLL_SECONDS: '60', ...process.env } },
)
process.exit(status ?? 1)
