// The live pictures of the cluster.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { openPage } from '../support/browser.ts'
import { at, type Context, unique } from '../support/context.ts'

export function wakeTests({ cluster, browser }: Context): void {
  const [first, second] = cluster.nodes.map(({ url }) => url)
  const headers = { 'content-type': 'application/json' }

  /** Pushes on one node while a pop waits on another. */
  async function wake(queue: string): Promise<void> {
    const waiting = fetch(`${first}/api/v1/pop/queue/${queue}?wait=true&timeout=10000&autoAck=true`)
    await eventually(async () => {
      const stats = (await (await fetch(`${first}/stats`)).json()) as {
        waiting: { by_queue: Record<string, number> }
      }
      return (stats.waiting.by_queue[queue] ?? 0) > 0
    })
    const body = JSON.stringify({ items: [{ queue, payload: 1 }] })
    await fetch(`${second}/api/v1/push`, { method: 'POST', headers, body })
    await waiting
  }

  test('the wake map shows the push, the hint, the grant and the found message', async (t) => {
    const queue = unique('woken')
    const { page, problems } = await openPage(t, browser, at(cluster.url, 'cluster'))
    await page.getByText('every step of a wake-up').waitFor()
    const log = page.locator('.wake-log li').filter({ hasText: queue })
    // A poll may find the message before the hint arrives.
    await eventually(
      async () => {
        await wake(queue)
        const lines = (await log.allTextContents()).join()
        return /stored 1/.test(lines) && /sent the hint/.test(lines) && /found 1/.test(lines)
      },
      { timeoutMs: 20_000 },
    )
    t.match((await log.allTextContents()).join(), /lets worker \d+ pop \(\w+, [\d.]+ ms/)
    t.same(problems, [])
  })

  test('the backoff of a group with waiters is drawn', async (t) => {
    const queue = unique('backing')
    const { page, problems } = await openPage(t, browser, at(cluster.url, 'groups'))
    const waiting = fetch(`${first}/api/v1/pop/queue/${queue}?wait=true&timeout=15000&autoAck=true`)
    await page.locator('.backoff').filter({ hasText: queue }).getByText('1 waiter').waitFor()
    await fetch(`${second}/api/v1/push`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ items: [{ queue, payload: 1 }] }),
    })
    t.equal((await waiting).status, 200)
    t.same(problems, [])
  })
}
