// The output of every verb: a table on a terminal, compact JSON in a pipe. Values that change between runs
// are masked. ROUSE_TEST_SNAPSHOTS=write rewrites test/snapshots; check the diff before you commit it.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { sharedNode } from './support/node.ts'
import { plain, type Run, rouse, rouseOnTerminal, terminalMissing } from './support/rouse.ts'

const node = await sharedNode(['--node-id=node-1'])
const env = { ROUSE_URL: node.url, ROUSE_DATABASE_URL: node.database.url }
const timeout = 240_000
const skip = await terminalMissing()
const folder = fileURLToPath(new URL('./snapshots/', import.meta.url))
const queues = '{"queues":[{"queue":"applied","options":{"leaseTime":42}}]}'

/** The lease id of the last pop. */
let lease = ''

interface Step {
  readonly args: readonly string[]
  /** False if the output in a pipe is a document of the API. The snapshot then says only that it is JSON. */
  readonly isWhole?: false
}

/** The commands, in the order in which they run. `<lease>` is the last lease id, `<file>` lists queues. */
const story: readonly Step[] = [
  { args: ['queues'] },
  { args: ['push', 'orders', '{"n":1}', '--partition', 'eu'] },
  { args: ['push', 'orders', '2', '--delay', '1h'] },
  { args: ['queues'], isWhole: false },
  { args: ['queues', 'get', 'orders'], isWhole: false },
  { args: ['messages', 'orders'], isWhole: false },
  { args: ['pop', 'orders', '--partition', 'eu'], isWhole: false },
  { args: ['ack', '<lease>'], isWhole: false },
  { args: ['pop', 'orders', '--partition', 'eu'] },
  { args: ['groups'], isWhole: false },
  { args: ['why', 'orders'], isWhole: false },
  { args: ['dlq', 'list', 'orders'] },
  { args: ['dlq', 'errors', 'orders'] },
  { args: ['dlq', 'redrive', 'orders', '--dry-run'], isWhole: false },
  { args: ['apply', '-f', '<file>', '--dry-run'] },
  { args: ['apply', '-f', '<file>'] },
  { args: ['queues', 'pause', 'orders'] },
  { args: ['queues', 'resume', 'orders'] },
  { args: ['queues', 'purge', 'orders'] },
  { args: ['queues', 'rm', 'orders'] },
  { args: ['queues', 'rm', 'applied'] },
  { args: ['queues', 'get', 'orders'] },
  { args: ['migrate', '--dry-run'] },
]

test('the output on a terminal matches its snapshot', { timeout, skip }, (t) =>
  play(t, 'terminal', rouseOnTerminal),
)

test('the output in a pipe matches its snapshot', { timeout }, (t) => play(t, 'pipe', rouse))

test('verbs whose output depends on the node or machine print one compact document in a pipe', {
  timeout,
}, async (t) => {
  for (const args of [
    ['nodes'],
    ['stats'],
    ['top', '--once'],
    ['doctor'],
    ['bench', '--seconds', '1'],
  ]) {
    const { out } = await rouse(args, { env })
    t.ok(isCompactJson(out), args.join(' '))
  }
})

async function play(t: Test, name: string, run: typeof rouse): Promise<void> {
  const seen: string[] = []
  const queuesFile = join(t.testdir({ 'queues.json': queues }), 'queues.json')
  for (const { args, isWhole } of story) {
    const words = args.map((word) => word.replace('<lease>', lease).replace('<file>', queuesFile))
    const done = await run(words, { env })
    lease = leaseOf(done) ?? lease
    const shown = isWhole === false && isCompactJson(done.out) ? '(one line of JSON)\n' : done.out
    seen.push(`$ rouse ${args.join(' ')}\n${masked(shown)}${masked(done.err)}(${done.code})\n`)
  }
  const file = `${folder}${name}.txt`
  if (process.env.ROUSE_TEST_SNAPSHOTS === 'write') {
    await mkdir(folder, { recursive: true })
    await writeFile(file, seen.join('\n'))
  }
  const wanted = (await readFile(file, 'utf8')).split(/\n(?=\$ rouse )/)
  t.equal(seen.length, wanted.length)
  for (const [i, text] of seen.entries()) {
    t.equal(text.trimEnd(), wanted[i]?.trimEnd(), story[i]?.args.join(' ') ?? '')
  }
}

function leaseOf({ out, err }: Run): string | undefined {
  return /"receipt":"([^"]+)"/.exec(out)?.[1] ?? /rouse ack (\S+)/.exec(plain(out + err))?.[1]
}

function isCompactJson(text: string): boolean {
  try {
    return `${JSON.stringify(JSON.parse(text))}\n` === text
  } catch {
    return false
  }
}

/** Masks ids, times, and the spaces after them, whose number depends on their length. */
function masked(text: string): string {
  return (
    plain(text)
      .replaceAll(lease === '' ? '\u0000' : lease, '<lease>')
      .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
      .replaceAll(/"(partition_id|partitionId|transaction_id)":"[\d-]+"/g, '"$1":"<n>"')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
      .replaceAll(/\b\d+(\.\d)?s\b|\b\d+m\d\ds\b/g, '<ago>')
      .replaceAll(/(?<!\.)\b\d+\.\d\b(?!\.)/g, '<rate>')
      .replaceAll(/127\.0\.0\.1:\d+/g, '<address>')
      .replaceAll(/ {2,}/g, '  ')
      // The list of options belongs to the API, so this snapshot leaves it out.
      .replace(/(OPTION {2}VALUE\n)(.+\n)+/, '$1…\n')
      .replaceAll(/ +$/gm, '')
  )
}
