// Steps about access to the cluster: nothing without a key, the dashboard and the metrics with one.
import { ask, expect, until } from './http.mjs'

const prometheusImage = 'prom/prometheus:v3.0.0'
const guarded = [
  '/metrics',
  '/stats',
  '/api/v1/resources/queues',
  '/api/v1/keys',
  '/api/v1/pop/queue/x',
]

export const accessSteps = [
  {
    title: 'without a key, and with a wrong one, every route that has data returns 401',
    async run(cluster) {
      const url = cluster.url('balancer')
      const body = { items: [{ queue: 'x', payload: 1 }] }
      for (const key of [null, `rouse_${'0'.repeat(43)}`]) {
        for (const path of guarded) await expectStatus(401, `${url}${path}`, { key })
        await expectStatus(401, `${url}/api/v1/push`, { key, body })
      }
      await expectStatus(200, `${url}/live`, { key: null })
    },
  },
  {
    title: 'with a key the metrics, the documentation and the dashboard are served',
    async run(cluster) {
      const url = cluster.url('balancer')
      const metrics = await expectStatus(200, `${url}/metrics`)
      expect(
        /^rouse_database_up 1$/m.test(metrics.text),
        'the metrics do not say that the database is up',
      )
      const docs = await expectStatus(200, `${url}/docs/quick-start.html`)
      expect(docs.text.includes('<title>Quick start'), 'the documentation is not in the image')
      return signIn(cluster, url)
    },
  },
  {
    title: 'Prometheus of the profile scrapes all nodes, with a key of its own',
    run: monitor,
  },
]

/** As the dashboard does: its files need no key, its data need the cookie of a session. */
async function signIn(cluster, url) {
  const page = await expectStatus(200, `${url}/dashboard/`, { key: null })
  const files = [...page.text.matchAll(/(?:src|href)="\.?\/?([\w.-]+\.(?:js|css))"/g)].map(
    ([, name]) => name,
  )
  expect(files.length >= 2, `the dashboard has only ${files.join(', ')}`)
  for (const name of files) await expectStatus(200, `${url}/dashboard/${name}`, { key: null })
  const session = `${url}/api/v1/session`
  await expectStatus(401, session, { key: null, body: { key: 'rouse_wrong' } })
  const signedIn = await expectStatus(200, session, { key: null, body: { key: cluster.adminKey } })
  const cookie = signedIn.headers['set-cookie'][0].split(';')[0]
  for (const node of cluster.nodes) {
    await expectStatus(200, `${cluster.url(node)}/stats`, { key: null, headers: { cookie } })
  }
  return `${files.join(', ')}; the session is valid on ${cluster.nodes.length} nodes`
}

async function monitor(cluster) {
  if (!(await cluster.hasImage(prometheusImage)))
    return `skipped: there is no image ${prometheusImage}`
  await cluster.upMonitoring()
  const api = `${cluster.url('prometheus')}/api/v1`
  await until('three targets are up', async () => {
    const { json } = await ask(`${api}/targets`, { key: null })
    const targets = json.data.activeTargets
    const failed = targets.filter(({ lastError }) => lastError !== '')
    if (failed.length > 0) throw new Error(failed[0].lastError)
    return targets.length === 3 && targets.every(({ health }) => health === 'up')
  })
  const { json } = await ask(`${api}/rules`, { key: null })
  const rules = json.data.groups.flatMap((group) => group.rules)
  expect(rules.length > 5, 'the alert rules are not loaded')
  return `${rules.length} alert rules`
}

async function expectStatus(status, url, options) {
  const answer = await ask(url, options)
  expect(
    answer.status === status,
    `${url} returned ${answer.status}, not ${status}: ${answer.text}`,
  )
  return answer
}
