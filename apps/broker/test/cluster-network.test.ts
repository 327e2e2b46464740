// Nodes whose datagrams are lost: some of them, all of them, and in one direction. In a network namespace of its own, by the
// program that also measures it (`npm run bench -- cluster`).
import { spawn, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const probe =
  'ip link set lo up && iptables -A INPUT -p udp -m statistic --mode random --probability 0.3 -j DROP'
const isPermitted = spawnSync('unshare', ['-n', '--', 'sh', '-c', probe]).status === 0
const skip = isPermitted ? false : 'network namespaces with iptables are not permitted here'

interface Figures {
  readonly max: number
  readonly sources: string
}

test('wakes survive lost datagrams, a full cut and a one-way cut', {
  skip,
  timeout: 240_000,
}, async (t) => {
  const results = await run(['--trials', '20', '--only', 'wake,loss,cut,one-way', '--json'])
  const of = (what: string): Figures => results[what] as Figures
  // Who was woken by what is certain on any machine; how fast is for the bench.
  t.match(of('a → b').sources, /udp/)
  t.match(of('b → a').sources, /udp/)
  t.match(of('30 % loss, a → b').sources, /udp/, 'most hints arrive, one way or the other')
  t.match(of('no UDP, a → b').sources, /fallback/)
  t.notMatch(of('no UDP, a → b').sources, /udp/)
  t.match(of('healed, a → b').sources, /udp/, 'it heals by itself')
  t.match(of('b deaf, a → b').sources, /fallback/)
  t.match(of('b deaf, b → a').sources, /udp/, 'the other direction is not harmed')
  for (const [what, { max }] of Object.entries(results)) t.ok(max < 5_000, `${what}: ${max} ms`)
})

async function run(args: readonly string[]): Promise<Record<string, Figures>> {
  const { PATH = '', HOME = '' } = process.env
  const bench = ['--import', 'tsx', 'test/bench/cluster.ts', ...args]
  const child = spawn('env', ['-i', `PATH=${PATH}`, `HOME=${HOME}`, process.execPath, ...bench], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  for await (const bytes of child.stdout) text += String(bytes)
  return JSON.parse(text) as Record<string, Figures>
}
