import { test } from 'tap'
import { parseConnectionTarget } from '../../src/hosts/connection-target.ts'

test('a URL with one host is passed on unchanged', async (t) => {
  for (const url of [
    'postgres://user:secret@one:5433/rouse?sslmode=disable',
    'postgresql://one/rouse',
    'postgres:///rouse?host=/run/postgresql',
    '/run/postgresql rouse',
  ]) {
    const { hosts, readWrite } = parseConnectionTarget(url)
    t.same(
      hosts.map((host) => host.url),
      [url],
    )
    t.equal(readWrite, false)
  }
})

test('several hosts share the rest of the URL, and one of them must take writes', async (t) => {
  const url = 'postgres://u:p%40ss@one:1,[::1]:2,three/db?a=1&target_session_attrs=read-write&b=2'
  t.same(parseConnectionTarget(url), {
    hosts: [
      { name: 'one:1', url: 'postgres://u:p%40ss@one:1/db?a=1&b=2' },
      { name: '[::1]:2', url: 'postgres://u:p%40ss@[::1]:2/db?a=1&b=2' },
      { name: 'three', url: 'postgres://u:p%40ss@three/db?a=1&b=2' },
    ],
    readWrite: true,
  })
  t.equal(parseConnectionTarget('postgres://one,two/db').readWrite, true)
  t.equal(parseConnectionTarget('postgres://one,two/db?target_session_attrs=any').readWrite, false)
  t.equal(parseConnectionTarget('postgres://one/db?target_session_attrs=primary').readWrite, true)
})

test('a URL that cannot be parsed is refused without showing its password', async (t) => {
  const refused = { name: 'DatabaseHostError', code: 'bad_target' }
  const many = Array.from({ length: 17 }, (_, i) => `host${i}`).join(',')
  for (const url of [
    'postgres://u:secret@one,,two/db',
    `postgres://u:secret@${many}/db`,
    'postgres://u:secret@one,two/db?target_session_attrs=prefer-standby',
  ]) {
    t.throws(() => parseConnectionTarget(url), refused)
    t.throws(() => parseConnectionTarget(url), { message: /^(?!.*secret)/ })
  }
})
