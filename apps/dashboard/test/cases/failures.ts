// A node dies while the page is open.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { openPage } from '../support/browser.ts'
import { at, type Context, unique } from '../support/context.ts'

const shownMsMax = 6_000

export function failureTests({ cluster, browser }: Context): void {
  test('a killed node is shown within 6 s, and the page continues through another one', async (t) => {
    const { page } = await openPage(t, browser, at(cluster.url, 'overview'))
    const answered = page.getByText(/Answered by node-\d/)
    const [, answering] = /by (node-\d)/.exec((await answered.textContent()) ?? '') ?? []
    const { nodes } = await cluster.describe()
    const victim = nodes.find(({ id }) => id === answering)
    if (victim === undefined) throw new Error(`there is no node ${answering}`)
    process.kill(victim.pid, 'SIGKILL')
    const killedAtMs = performance.now()
    await page.getByText(new RegExp(`Node ${answering} does not answer`)).waitFor()
    const tookMs = performance.now() - killedAtMs
    t.ok(tookMs <= shownMsMax, `${Math.round(tookMs)} ms`)
    t.not(await answered.textContent(), undefined)
    const queue = unique('after')
    await cluster.push(queue)
    await page.getByRole('link', { name: 'Queues', exact: true }).click()
    await page.getByRole('link', { name: queue, exact: true }).waitFor()
    // The supervisor starts it again.
    await eventually(
      async () => (await fetch(`${victim.url}/ready`).catch(() => undefined))?.ok === true,
      {
        timeoutMs: 30_000,
      },
    )
    await page.getByRole('link', { name: 'Overview' }).click()
    await page
      .getByText(new RegExp(`Node ${answering} does not answer`))
      .waitFor({ state: 'detached' })
    t.pass('it is back')
  })
}
