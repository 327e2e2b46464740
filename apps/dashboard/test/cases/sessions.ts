// Signing in, on a node of its own: the first key closes a cluster.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { freePort, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { openPage } from '../support/browser.ts'
import { at, type Context } from '../support/context.ts'
import { audience, clientId, login, startIssuer } from '../support/issuer.ts'

const bin = fileURLToPath(new URL('../../../cli/bin/rouse.js', import.meta.url))

export function sessionTests({ cluster, browser }: Context): void {
  test('where keys are needed, the page asks for one, and shows what its grants allow', async (t) => {
    const database = await testDatabase(t, { instrumented: false })
    const port = await freePort()
    const flags = [`--database-url=${database.url}`, `--port=${port}`, '--gossip-port=0']
    await cluster.addNode(t, flags)
    const created = (name: string, preset: string) =>
      spawnSync(process.execPath, [bin, 'keys', 'create', name, '--preset', preset], {
        env: { PATH: process.env.PATH, ROUSE_DATABASE_URL: database.url },
        encoding: 'utf8',
      }).stdout.trim()
    const viewer = created('eve', 'viewer')
    const url = `http://127.0.0.1:${port}`
    const { page, problems } = await openPage(t, browser, `${url}/dashboard/`)
    await page.reload()
    await page.getByLabel('API key').fill(`${viewer.slice(0, -1)}_`)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('This key is not valid').waitFor()
    await page.getByLabel('API key').fill(viewer)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    t.equal(await page.getByRole('link', { name: 'Keys' }).count(), 0, 'keys are for admins')
    t.same(await page.evaluate('document.cookie'), '', 'scripts cannot read the session')
    t.same(await page.evaluate('JSON.stringify(localStorage)'), '{}', 'nor is the key stored')
    await page.goto(at(url, 'queues'))
    t.equal(await page.getByRole('button', { name: 'Push', exact: true }).isDisabled(), true)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
    t.same(
      problems.filter((problem) => !problem.includes('401')),
      [],
    )
  })

  test('with an OIDC issuer, a user signs in there, and comes back to the page', async (t) => {
    const database = await testDatabase(t, { instrumented: false })
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const issuer = await startIssuer(t, `${url}/dashboard/`)
    await cluster.addNode(t, [
      `--database-url=${database.url}`,
      `--port=${port}`,
      '--gossip-port=0',
      `--oidc-issuer=${issuer}`,
      `--oidc-audience=${audience}`,
      `--oidc-client-id=${clientId}`,
      `--oidc-login=${login}`,
    ])
    const { page, problems } = await openPage(t, browser, `${url}/dashboard/?code=x&state=y`)
    const start = page.getByRole('button', { name: `Sign in with ${new URL(issuer).host}` })
    await start.waitFor()
    t.match(await page.evaluate('location.search'), 'code=x', 'a code without a request is left')
    await page.goto(at(url, 'queues'))
    await start.click()
    await page.getByRole('button', { name: 'I am Alice' }).click()
    await page.getByRole('heading', { name: 'Queues' }).waitFor()
    t.equal(page.url(), at(url, 'queues'), 'the page that was open, without the code')
    t.same(await page.evaluate('document.cookie'), '', 'scripts cannot read the session')
    t.same(await page.evaluate('JSON.stringify(sessionStorage)'), '{}', 'the verifier is gone')
    t.equal(await page.getByRole('button', { name: 'Push', exact: true }).isDisabled(), true)
    await page.reload()
    await page.getByRole('heading', { name: 'Queues' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await start.waitFor()
    t.same(
      problems.filter((problem) => !problem.includes('401')),
      [],
    )
  })
}
