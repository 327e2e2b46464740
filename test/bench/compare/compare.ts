// `npm run bench -- compare COMMIT [row …] [--rounds 24] [--seconds 1.5] [--margin 0.03]`: this checkout against a
// build of COMMIT. Both run at the same time on one PostgreSQL with a database each, and take turns under load.
// Prints, for each row, the medians of CPU per message (of nodes + of PostgreSQL) and of throughput, and the ratio of
// CPU (this checkout to COMMIT) with the spread of that ratio. A spread wider than the margin means that the ratio
// cannot be measured on this machine. Many short rounds are better than few long ones: what disturbs the machine
// lasts for seconds. Autovacuum and checkpoints are off, because they would be counted in a round at random.
//
// `npm run bench -- compare --without timelines` (or `observation`) `push-1 push-100`: this checkout against itself
// without the timelines of messages, or without any record of its work. The ratio is what that costs. `--without keys`:
// this checkout with API keys against itself without them.
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startEmbeddedPostgres } from '@rouse/database'
import pg from 'pg'
import { buildCommit } from './build.ts'
import { median, type Round, ratioOf } from './ratio.ts'
import { type OpenRow, openRow, rows } from './rows.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '24' },
    seconds: { type: 'string', default: '1.5' },
    margin: { type: 'string', default: '0.03' },
    without: { type: 'string' },
  },
})
const without = { timelines: 'counters', observation: 'off', keys: 'on' }[flags.without ?? '']
const hasKey = flags.without === 'keys'
if (flags.without !== undefined && without === undefined) {
  console.error('--without must be timelines, observation or keys')
  process.exit(2)
}
const [commit, ...wanted] = without === undefined ? positionals : ['this checkout', ...positionals]
const unknown = wanted.filter((name) => !(name in rows))
if (commit === undefined || unknown.length > 0) {
  const problem = unknown.length > 0 ? `unknown rows: ${unknown.join(', ')}; ` : ''
  console.error(
    `${problem}usage: npm run bench -- compare COMMIT [rows]; rows: ${Object.keys(rows).join(', ')}`,
  )
  process.exit(2)
}
const [rounds, seconds, margin] = [flags.rounds, flags.seconds, flags.margin].map(Number) as [
  number,
  number,
  number,
]
if (!(rounds >= 6 && seconds > 0 && margin > 0)) {
  console.error('--rounds must be at least 6, --seconds and --margin positive numbers')
  process.exit(2)
}

const other =
  without === undefined ? await buildCommit(root, commit) : { root, remove: async () => {} }
const env = without === undefined || hasKey ? undefined : { ROUSE_OBSERVATION: without }
const server = await startEmbeddedPostgres({
  settings: {
    shared_buffers: '512MB',
    max_connections: '300',
    autovacuum: 'off',
    checkpoint_timeout: '1d',
    max_wal_size: '40GB',
  },
})
try {
  console.log(`${rounds} rounds of ${seconds} s each; CPU of nodes and PostgreSQL per message`)
  for (const name of wanted.length > 0 ? wanted : Object.keys(rows)) await compareRow(name)
} finally {
  await server.stop()
  await other.remove()
}

async function compareRow(name: string): Promise<void> {
  const ours = await openRow({ name, root, server, databaseUrl: await createDatabase(), hasKey })
  const theirs = await openRow({
    name,
    root: other.root,
    server,
    databaseUrl: await createDatabase(),
    env,
  })
  try {
    // V8 compiles hot code in the first seconds.
    for (const row of [ours, theirs]) await row.run(8)
    const [first, second]: [Round[], Round[]] = [[], []]
    for (let i = 0; i < rounds; i += 1) {
      const turns: [OpenRow, Round[]][] = [
        [ours, first],
        [theirs, second],
      ]
      for (const [row, results] of i % 2 === 0 ? turns : turns.reverse()) {
        results.push(await row.run(seconds))
      }
    }
    print(name, first, second)
  } finally {
    await ours.stop()
    await theirs.stop()
  }
}

function print(name: string, ours: readonly Round[], theirs: readonly Round[]): void {
  const { ratio, spread } = ratioOf(ours, theirs)
  const cpu = (results: readonly Round[]): string => {
    const node = median(results.map(({ cpuMicros, postgresMicros }) => cpuMicros - postgresMicros))
    const postgres = median(results.map(({ postgresMicros }) => postgresMicros))
    return `${node.toPrecision(3)} + ${postgres.toPrecision(3)} µs`
  }
  const rate = (results: readonly Round[]): string =>
    `${Math.round(median(results.map(({ perSecond }) => perSecond))).toLocaleString('en')}/s`
  const isMeasurable = spread <= margin
  console.log(
    `${name}: ${cpu(ours)} and ${rate(ours)}, was ${cpu(theirs)} and ${rate(theirs)}; ` +
      `CPU ratio ${ratio.toFixed(3)} ± ${spread.toFixed(3)}` +
      (isMeasurable ? '' : ` (not measurable here: the spread is wider than ${margin})`),
  )
}

/** Each build migrates a database of its own. */
async function createDatabase(): Promise<string> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const name = `bench_${process.hrtime.bigint()}`
  await client.query(`create database ${name}`)
  await client.end()
  const url = new URL(server.url)
  url.pathname = `/${name}`
  return url.href
}
