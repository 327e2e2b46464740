// The dashboard in a real Chromium, on a live cluster of three nodes. One cluster and one browser for all tests: each
// uses its own queues. The test that kills a node comes last.
import { t as root, type Test, test } from 'tap'
import { actionTests } from './cases/actions.ts'
import { failureTests } from './cases/failures.ts'
import { incidentTests } from './cases/incidents.ts'
import { listTests } from './cases/lists.ts'
import { otherOriginTests } from './cases/other-origins.ts'
import { pageTests } from './cases/pages.ts'
import { sessionTests } from './cases/sessions.ts'
import { wakeTests } from './cases/wakes.ts'
import { whyTests } from './cases/whys.ts'
import { browserMissing, startBrowser } from './support/browser.ts'
import { startCluster } from './support/cluster.ts'

const parts = [
  pageTests,
  wakeTests,
  actionTests,
  whyTests,
  incidentTests,
  listTests,
  sessionTests,
  otherOriginTests,
  failureTests,
]

if (browserMissing === false) {
  const shared = root as unknown as Test
  const [cluster, browser] = await Promise.all([startCluster(shared), startBrowser(shared)])
  for (const register of parts) register({ cluster, browser })
} else {
  test('the dashboard in a browser', { skip: browserMissing }, async () => {})
}
