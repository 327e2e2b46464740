// Nodes whose datagrams are lost: some of them, all of them, and in one direction. In a network namespace of its own, by the
// program that also measures it (`npm run bench -- cluster`).
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { privateNetworkMissing } from '@rouse/testkit'
import { test } from 'tap'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const skip = privateNetworkMissing()

interface Figures {
  readonly max: number
  /** What woke waiters how often, as in `udp 60`. */
  readonly sources: string
}

/** At 30 % loss one hint in eleven is lost with its repetition: of so many it happens to some. */
const trials = 60
/** A hint that nobody notices is lost is found by the idle check, 5 s after the waiter came. */
const wakeMsMax = 3_000

test('wakes survive lost datagrams, a full cut and a one-way cut', {
  skip,
  timeout: 240_000,
}, async (t) => {
  const args = ['--trials', String(trials), '--only', 'wake,loss,cut,one-way', '--json']
  const results = await run(args)
  const count = (what: string, source: string): number => {
    const counted = new RegExp(`\\b${source} (\\d+)`).exec(results[what]?.sources ?? '')
    return Number(counted?.[1] ?? 0)
  }
  /** Where the machine stalls a waiter's own first query may be the answer, or a check be first: seldom. */
  const isHinted = (what: string, of: number, message: string) => {
    t.ok(count(what, 'udp') >= 0.5 * of, `${what}: ${message}`)
    t.ok(count(what, 'fallback') <= 0.1 * of, `${what}: not by checks`)
  }
  /** That a peer is given up is a reason to look, too, and counted as its hint. */
  const isChecked = (what: string, of: number) => {
    t.ok(count(what, 'udp') <= 1, `${what}: no hint comes through`)
    t.ok(count(what, 'fallback') >= of - 1, `${what}: checks find them`)
  }
  // Who was woken by what is certain on any machine; how fast is for the bench.
  isHinted('a → b', trials, 'by hints')
  isHinted('b → a', trials, 'by hints')
  isHinted('30 % loss, a → b', trials, 'a lost hint was repeated, or is missed')
  isChecked('no UDP, a → b', trials / 10)
  isHinted('healed, a → b', trials / 4, 'it heals by itself')
  isChecked('b deaf, a → b', trials / 10)
  // The one who is not heard looks often, too: here a check may well be first.
  t.ok(count('b deaf, b → a', 'udp') > 0, 'the other direction is not harmed')
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
