// Runs `npm run chaos -- --gate --seed 7` in a process of its own, so that the environment of the test run
// does not reach the cluster.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

/**
 * The run takes two minutes on a quiet machine. On a busy machine it may take longer without failing, because
 * no rule of the gate depends on speed.
 */
const msMax = 600_000

t.setTimeout(msMax)

t.test('eight faults under all workloads break no promise', { timeout: msMax }, async (t) => {
  const { code, lines } = await runGate()
  for (const line of lines) t.comment(line)
  t.equal(code, 0)
  const held =
    /^[\d,]+ messages, 8 faults: 0 lost, 0 out of order, 0 overlapping leases, ([\d,]+) duplicates \(\1 explained\), seed 7$/
  t.match(lines.at(-1), held)
  const inOnePartition = /\bone-partition ([\d,]+)/.exec(lines.at(-2) ?? '')?.[1] ?? '0'
  t.ok(Number(inOnePartition.replaceAll(',', '')) >= 50_000, `${inOnePartition} in one partition`)
})

async function runGate(): Promise<{ code: number | null; lines: string[] }> {
  const command = fileURLToPath(new URL('chaos-command.ts', import.meta.url))
  const loader = new URL('../../scripts/typescript/register.mjs', import.meta.url).href
  const node = [`--import=${loader}`, '--conditions=@rouse/source', command]
  const env = ['env', '-i', `PATH=${process.env.PATH}`, `HOME=${process.env.HOME}`]
  const gate = [...env, process.execPath, ...node, '--gate', '--seed', '7']
  // The gate runs at lower priority than the tests that run at the same time, because some of those measure
  // time.
  const child = spawn('nice', ['-n', '5', ...gate], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  const listen = (text: string): void => {
    printed += text
  }
  child.stdout.setEncoding('utf8').on('data', listen)
  child.stderr.setEncoding('utf8').on('data', listen)
  t.teardown(() => child.kill())
  const code = await new Promise<number | null>((resolve) => void child.once('exit', resolve))
  return { code, lines: printed.trimEnd().split('\n') }
}
