// The output of every verb on a small screen, on a large one, and in a pipe. Values that change between runs are
// masked by others of the same length, so that the snapshots look like the screens.
// ROUSE_TEST_SNAPSHOTS=write rewrites test/snapshots; look at the screens before you commit them.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { createProgram } from '../src/program.ts'
import { makeQueues, removeQueues } from './support/fixture.ts'
import { masked, maskedLoosely } from './support/mask.ts'
import { sharedNode } from './support/node.ts'
import { inPipe, onTerminal, plain, type RunOptions, terminalMissing } from './support/rouse.ts'

const node = await sharedNode(['--node-id=node-1'])
const env = { ROUSE_URL: node.url, TZ: 'UTC' }
const database = node.database.url
const timeout = 240_000
const skip = await terminalMissing()
const folder = fileURLToPath(new URL('./snapshots/', import.meta.url))
const session = fileURLToPath(new URL('./support/session.mjs', import.meta.url))
const queues = '{"queues":[{"queue":"applied","options":{"leaseTime":42}}]}'

/** `loose`: the output depends on the machine or on time, so that its numbers are not compared. */
type Step = string | { readonly loose: string }

/** The command lines, in the order in which they run. `<name>` is a value of the fixture. */
const story: readonly Step[] = [
  '--version',
  '--help',
  'queues',
  'queues list --search order',
  'queues get orders',
  { loose: 'top --once' },
  'why orders',
  'why orders -g billing',
  'why emails',
  'why reports',
  'why invoices',
  'why nowhere',
  'groups',
  'groups list orders',
  'groups list nowhere',
  'schedules',
  'schedules show nightly',
  'messages emails',
  'messages list orders --group billing --state retrying',
  'messages get <heldId>',
  'messages get <scheduledId>',
  'messages get nowhere',
  'dlq',
  'dlq list invoices',
  'dlq list nowhere',
  'dlq errors invoices',
  'dlq show <deadId>',
  'push hello {"to":"you"} --header tenant=eu --delay 1h',
  'push hello 1',
  'push hello not-json',
  'pop hello',
  'pop hello',
  'pop orders -g biling --from all --lease 10',
  'extend <receipt> --for 1h',
  'ack <receipt>',
  'ack <receipt>',
  'release <receipt>',
  'pop ordrs',
  'messages run-now <scheduledId>',
  'messages cancel <heldId>',
  'messages cancel --queue hello --state scheduled --dry-run',
  'messages cancel --queue hello --state scheduled --yes',
  'dlq redrive invoices --dry-run',
  'dlq redrive invoices --id <deadId>',
  'dlq purge invoices --error TypeError --yes',
  'configure hello retryLimit=5 onFailure=skip',
  'configure hello retrylimit=5',
  'apply -f <file> --dry-run',
  'apply -f <file>',
  'pause hello',
  'resume hello',
  'schedules put hourly --queue hello --cron 0_*_*_*_* --payload {"n":1} --paused',
  'schedules run hourly',
  'schedules rm hourly --yes',
  'groups seek orders audit --to end --yes',
  'groups rm orders audit --yes',
  'queues purge hello --yes',
  'queues rm hello --yes',
  'queues rm hello --yes',
  'nodes',
  { loose: 'stats' },
  { loose: 'doctor' },
  { loose: 'bench --seconds 200ms --verify' },
  'keys',
  { loose: 'audit --limit 3' },
  'migrate --dry-run --database-url <database>',
  'adopt-copy --dry-run --database-url <database>',
  'completion fish',
  'pop orders --btach 3',
  'qeues',
  'queues lst',
]

/** They run until they are stopped, or start a cluster: other tests cover them. */
const notPlayed = ['dev', 'serve', 'tail', '__complete']

test('every verb is in the story', async (t) => {
  const played = new Set(story.map((step) => lineOf(step).split(' ')[0]))
  for (const command of createProgram().commands) {
    t.ok(played.has(command.name()) || notPlayed.includes(command.name()), command.name())
  }
})

for (const [name, columns, rows] of [
  ['80x24', 80, 24],
  ['200x50', 200, 50],
] as const) {
  test(`the screens of ${columns} columns match their snapshot`, { timeout, skip }, async (t) => {
    const screens = await play(t, name, (words, options) =>
      onTerminal(words, { ...options, size: { columns, rows } }),
    )
    for (const { line, text } of screens) {
      const lines = text.split('\n').map((one) => one.slice(one.lastIndexOf('\r') + 1))
      // The terminal wraps errors; everything else is made to fit.
      const wide = lines.filter((one) => one.length > columns && !/^(rouse|error): /.test(one))
      t.same(wide, [], `${line} fits the screen`)
    }
  })
}

test('the output in a pipe matches its snapshot, and is JSON', { timeout }, async (t) => {
  for (const { line, text, code } of await play(t, 'pipe', inPipe)) {
    if (code !== 0 || /^(--|completion|keys generate)/.test(line)) continue
    t.ok(text.split('\n').filter(Boolean).every(isJson), `${line} prints JSON`)
  }
})

interface Screen {
  readonly line: string
  /** Standard output; on a terminal also standard error. */
  readonly text: string
  readonly code: number
}

async function play(
  t: Test,
  name: string,
  run: (words: readonly string[], options: RunOptions) => ReturnType<typeof inPipe>,
): Promise<Screen[]> {
  const fixture = await makeQueues(node)
  t.teardown(() => removeQueues(node))
  const files = t.testdir({ 'queues.json': queues })
  const { receipts, ...ids } = fixture
  const [receipt = ''] = receipts
  const values = { ...ids, receipt, file: join(files, 'queues.json'), database }
  const steps = story.map((step) => wordsOf(lineOf(step), values))
  await writeFile(join(files, 'steps.json'), JSON.stringify(steps))
  const { out, err } = await run([session, join(files, 'steps.json')], { env })
  const [outs, errs] = [partsOf(out), partsOf(err)]
  t.equal(outs.length, story.length, `${out.slice(-500)}${err.slice(-500)}`)
  const screens = outs.map(({ text, code }, i) => {
    const step = story[i] as Step
    return { line: lineOf(step), text, notes: errs[i]?.text ?? '', code, step }
  })
  const shown = screens.map(({ line, text, notes, code, step }) => {
    const mask = typeof step === 'string' ? masked : maskedLoosely
    return `$ rouse ${line}\n${withoutDocuments(mask(text + notes, node))}(${code})\n`
  })
  await compare(t, `${folder}${name}.txt`, shown)
  return screens
}

async function compare(t: Test, file: string, shown: readonly string[]): Promise<void> {
  if (process.env.ROUSE_TEST_SNAPSHOTS === 'write') {
    await mkdir(folder, { recursive: true })
    await writeFile(file, shown.join('\n'))
  }
  const wanted = (await readFile(file, 'utf8')).split(/\n(?=\$ rouse )/)
  t.equal(shown.length, wanted.length)
  for (const [i, text] of shown.entries()) {
    t.equal(text.trimEnd(), wanted[i]?.trimEnd(), lineOf(story[i] as Step))
  }
}

const documentMax = 150

/** Long documents are those of the API, and its own tests know their fields. */
function withoutDocuments(text: string): string {
  return text.replaceAll(/^[[{].*[\]}]\n/gm, (line) =>
    line.length > documentMax ? '(one line of JSON)\n' : line,
  )
}

function lineOf(step: Step): string {
  return typeof step === 'string' ? step : step.loose
}

/** `_` in a word is a space. */
function wordsOf(line: string, values: Readonly<Record<string, string>>): string[] {
  return line.split(' ').map((word) => {
    const filled = word.replace(/<(\w+)>/, (all, name: string) => values[name] ?? all)
    return /^\d_/.test(filled) ? filled.replaceAll('_', ' ') : filled
  })
}

function partsOf(output: string): { text: string; code: number }[] {
  const ends = [...plain(output).matchAll(/@@end (\d+)\n/g)]
  const texts = plain(output).split(/@@end \d+\n/)
  return ends.map(([, code], i) => ({ text: texts[i] ?? '', code: Number(code) }))
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line)
    return true
  } catch {
    return false
  }
}
