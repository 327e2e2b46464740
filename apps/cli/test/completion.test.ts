// Completion in a real shell: bash runs the script, which asks the program, which asks the cluster.
import { spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { sharedNode } from './support/node.ts'
import { bin, rouse } from './support/rouse.ts'

const node = await sharedNode()
const env = { ROUSE_URL: node.url }
const timeout = 120_000
const complete = async (...words: string[]) => {
  const { out } = await rouse(['__complete', '--', ...words], { env })
  return out.split('\n').filter(Boolean)
}

const hostile = 'x$(touch pwned)`touch pwned`'

test('verbs, flags, choices and live names are completed', { timeout }, async (t) => {
  const items = ['orders', 'orders-eu', hostile].map((queue) => ({ queue, payload: 1 }))
  await node.call('POST', '/api/v1/push', { items })
  await node.call('GET', '/api/v1/pop/queue/orders?consumerGroup=billing')
  await node.call('PUT', '/api/v1/schedules/nightly', { queue: 'orders', cron: '0 3 1 1 *' })
  for (const [words, wanted] of [
    [['que'], ['queues']],
    [
      ['queues', 'p'],
      ['pause', 'purge'],
    ],
    [
      ['queues', 'purge', 'ord'],
      ['orders', 'orders-eu'],
    ],
    [['pop', 'orders', '--wa'], ['--wait']],
    [['pop', 'orders', '--ur'], ['--url']],
    [['pop', 'orders', '-g', ''], ['billing']],
    [['pop', '-n', '3', 'orders-'], ['orders-eu']],
    [['messages', 'orders-'], ['orders-eu']],
    [
      ['messages', 'list', 'orders', '--state', 'r'],
      ['ready', 'retrying'],
    ],
    [['groups', 'rm', 'orders', 'b'], ['billing']],
    [['schedules', 'show', ''], ['nightly']],
    [['schedules', 'put', 's', '--queue', 'orders-'], ['orders-eu']],
    [['completion', 'z'], ['zsh']],
    [['configure', 'x'], [hostile]],
    [['ack', ''], []],
  ] as const) {
    t.same(await complete(...words), wanted, words.join(' '))
  }
  const down = { ROUSE_URL: 'http://127.0.0.1:1' }
  const silent = await rouse(['__complete', '--', 'queues', 'get', ''], { env: down })
  t.same(silent, { code: 0, out: '', err: '' }, 'a cluster that does not answer has no names')
})

const bash = spawnSync('bash', ['--version']).status === 0

test('bash completes the names of queues, and runs nothing that is in them', {
  timeout,
  skip: bash ? false : 'there is no bash',
}, async (t) => {
  const folder = t.testdir({})
  mkdirSync(join(folder, 'bin'))
  symlinkSync(bin, join(folder, 'bin', 'rouse'))
  const shell = (words: string) =>
    spawnSync(
      'bash',
      [
        '-c',
        `source <(rouse completion bash); COMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
         _rouse; printf '%s\\n' "\${COMPREPLY[@]}"`,
      ],
      {
        cwd: folder,
        env: { PATH: `${join(folder, 'bin')}:${process.env.PATH}`, ...env },
        encoding: 'utf8',
      },
    ).stdout.split('\n')
  t.same(shell('rouse why ord').filter(Boolean), ['orders', 'orders-eu'])
  t.same(shell('rouse why x').filter(Boolean), ['x\\$\\(touch\\ pwned\\)\\`touch\\ pwned\\`'])
  t.same(spawnSync('ls', [folder], { encoding: 'utf8' }).stdout.split('\n'), ['bin', ''])
})

test('there is a script for every shell', { timeout }, async (t) => {
  t.match((await rouse(['completion', 'zsh'])).out, /^#compdef rouse\n[\s\S]*compadd -- /)
  t.match((await rouse(['completion', 'fish'])).out, /complete -c rouse -f -a /)
  t.match(await rouse(['completion', 'tcsh']), { code: 1, err: /one of bash, zsh, fish/ })
})
