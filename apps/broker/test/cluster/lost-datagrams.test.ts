// Some datagrams between nodes are lost, or all of them, or all in one direction. The test runs the bench for
// this (`npm run bench -- cluster`), which uses a separate network namespace.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { privateNetworkMissing } from '@rouse/testkit'
import { test } from 'tap'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const skip = privateNetworkMissing()

interface Figures {
  readonly max: number
  /** How often each source woke a waiter, as in `udp 60`. */
  readonly sources: string
}

/** Enough trials to lose some hints twice: with 30 % loss, one hint in eleven is lost with its repetition. */
const trials = 60
/**
 * Below 5 s: if the loss of a hint is not noticed, the idle poll finds the message 5 s after the waiter came.
 */
const wakeMsMax = 3_000

test('waiters are woken in time despite lost datagrams, a full cut and a one-way cut', {
  skip,
  timeout: 240_000,
}, async (t) => {
  const args = ['--trials', String(trials), '--only', 'wake,loss,cut,one-way', '--json']
  const results = await run(args)
  const count = (what: string, source: string): number => {
    const counted = new RegExp(`\\b${source} (\\d+)`).exec(results[what]?.sources ?? '')
    return Number(counted?.[1] ?? 0)
  }
  /** Allows exceptions: on a stalled machine, the first query of a waiter or a poll may find the message. */
  const isHinted = (what: string, of: number, message: string) => {
    t.ok(count(what, 'udp') >= 0.5 * of, `${what}: ${message}`)
    t.ok(count(what, 'fallback') <= 0.25 * of, `${what}: not by polls`)
  }
  /** Allows one hint: a peer that is declared dead also causes a poll, which counts as a hint. */
  const isChecked = (what: string, of: number) => {
    t.ok(count(what, 'udp') <= 1, `${what}: no hint arrives`)
    t.ok(count(what, 'fallback') >= of - 1, `${what}: polls find them`)
  }
  // This test checks what woke each waiter, which does not depend on the machine. The bench checks how fast.
  isHinted('a → b', trials, 'by hints')
  isHinted('b → a', trials, 'by hints')
  isHinted('30 % loss, a → b', trials, 'lost hints were repeated, or their loss was noticed')
  isChecked('no UDP, a → b', trials / 10)
  isHinted('healed, a → b', trials / 4, 'hints arrive again')
  isChecked('b deaf, a → b', trials / 10)
  // Node a also polls often, because b does not hear it, so a poll may find the message before the hint.
  t.ok(count('b deaf, b → a', 'udp') > 0, 'the other direction still works')
  for (const [what, { max }] of Object.entries(results)) t.ok(max < wakeMsMax, `${what}: ${max} ms`)
})

async function run(args: readonly string[]): Promise<Record<string, Figures>> {
  const { PATH = '', HOME = '' } = process.env
  const bench = ['--import', 'tsx', 'test/bench/cluster/cluster.ts', ...args]
  const child = spawn('env', ['-i', `PATH=${PATH}`, `HOME=${HOME}`, process.execPath, ...bench], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  let text = ''
  for await (const bytes of child.stdout) text += String(bytes)
  const [code] = (await ended) as [number | null]
  if (code !== 0) throw new Error(`the bench ended with ${code}`)
  return JSON.parse(text) as Record<string, Figures>
}
