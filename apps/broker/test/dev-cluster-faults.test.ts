// What may be wrong, or go wrong, around a development cluster.
import { test } from 'tap'
import { DevCluster } from '../src/dev/dev-cluster.ts'
import { freePortBase, runStart } from './support/dev-cluster.ts'

const port = freePortBase()
const timeout = 240_000

for (const [flags, problem] of [
  [['--unknown'], '--unknown is no flag of npm start; there are --nodes N, --port P, --data DIR'],
  [['foo'], 'foo is no flag of npm start; there are --nodes N, --port P, --data DIR'],
  [['--data'], '--data wants a value'],
  [['--data', '--port', '5'], '--data wants a value'],
  [['--data', ''], '--data must name a folder'],
  [['--nodes', '-1'], '--nodes must be a whole number from 1 to 16'],
  [['--nodes=1.5'], '--nodes must be a whole number from 1 to 16'],
  [['--nodes', '99'], '--nodes must be a whole number from 1 to 16'],
  [['--port', '4700.5'], '--port must be a whole number from 1 to 65495'],
  [['--port', '65530'], '--port must be a whole number from 1 to 65495'],
] as const) {
  test(`npm start ${flags.join(' ')} is refused in one line`, { timeout }, async (t) => {
    const { exited, output } = runStart(t, flags)
    t.equal(await exited, 1)
    t.equal(output(), `Rouse: ${problem}\n`, 'and nothing was built before')
  })
}

test('what npm start would refuse, the cluster refuses as well', async (t) => {
  for (const wrong of [{ nodes: 1.5 }, { nodes: 17 }, { port: 4700.5 }, { port: 65_530 }]) {
    const options = { nodes: 3, port, dataDir: '/nowhere', say: () => {}, ...wrong }
    t.throws(() => new DevCluster(options), { code: 'bad_argument' })
  }
})
