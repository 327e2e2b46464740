// Five incidents: from the overview, following visible texts only, at most three clicks lead to a page that names the
// cause and has the action that ends it.
import { eventually } from '@rouse/testkit'
import type { Page } from 'playwright-core'
import { test } from 'tap'
import { openPage } from '../support/browser.ts'
import { at, type Context, unique } from '../support/context.ts'

const clicksMax = 3

export function incidentTests({ cluster, browser }: Context): void {
  /** Clicks the link beside the text of the overview. Counts the clicks. */
  async function follow(t: Parameters<typeof openPage>[0], text: string | RegExp) {
    const { page, problems } = await openPage(t, browser, at(cluster.url, 'overview'))
    let clicks = 0
    const click = async (target: ReturnType<Page['locator']>) => {
      clicks += 1
      await target.click()
    }
    await click(page.getByRole('listitem').filter({ hasText: text }).getByRole('link').first())
    const done = () => {
      t.ok(clicks <= clicksMax, `${clicks} clicks`)
      t.same(problems, [])
    }
    return { page, click, done }
  }

  test('incident: no consumer', async (t) => {
    const queue = unique('abandoned')
    await cluster.push(queue, 5)
    const { page, done } = await follow(t, `“${queue}”: 5 messages and no consumer`)
    await page.getByText('No consumer', { exact: true }).waitFor()
    await page.getByText(`rouse pop '${queue}'`).waitFor()
    await cluster.call('GET', `/api/v1/pop/queue/${queue}?batch=10&autoAck=true`)
    await page.getByText('No consumer', { exact: true }).waitFor({ state: 'detached' })
    done()
  })

  test('a restored copy of a database is named until it is adopted', async (t) => {
    const text =
      'This database is a copy of database “original”: schedules and redrives do not run.'
    const { page, problems } = await openPage(t, browser, at(cluster.url, 'overview'))
    const item = page.getByRole('listitem').filter({ hasText: text })
    t.equal(await item.count(), 0)
    await cluster.sql.query(`update rouse.cluster set database_name = 'original'`)
    await item.waitFor()
    await item.getByText('rouse adopt-copy').waitFor()
    await cluster.sql.query('update rouse.cluster set database_name = current_database()')
    await item.waitFor({ state: 'detached' })
    t.same(problems, [])
  })

  test('incident: a poison message holds a partition', async (t) => {
    const queue = unique('poisoned')
    await cluster.call('PUT', `/api/v1/queues/${queue}`, { options: { retryBackoffMs: [600_000] } })
    await cluster.push(queue, 3, { partition: 'customer-7' })
    await cluster.fail(queue, { error: 'cannot parse the address', errorCode: 'BAD_ADDRESS' })
    const { page, click, done } = await follow(
      t,
      `“${queue}”: a failed message (cannot parse the address)`,
    )
    await page.getByText('Partition "customer-7" is held').waitFor()
    await click(page.getByRole('button', { name: 'Cancel the message' }))
    await page.getByText('Partition "customer-7" is held').waitFor({ state: 'detached' })
    done()
  })

  test('incident: retention is held by a forgotten group', async (t) => {
    const queue = unique('kept')
    await cluster.push(queue, 3)
    for (const group of ['used', 'forgotten']) {
      await cluster.call('GET', `/api/v1/pop/queue/${queue}?consumerGroup=${group}&autoAck=true`)
    }
    await cluster.sql.query(
      `update rouse.groups g set last_seen_at = now() - interval '3 days'
         from rouse.queues q where q.id = g.queue_id and q.name = $1 and g.name = 'forgotten'`,
      [queue],
    )
    const { page, click, done } = await follow(t, `Group “forgotten” of queue “${queue}”`)
    await page.getByText(`Group “forgotten” of queue “${queue}” keeps`).waitFor()
    await click(page.getByRole('button', { name: 'Delete group …' }))
    await page.getByRole('textbox').last().fill('forgotten')
    await click(page.getByRole('button', { name: 'Delete group', exact: true }))
    await eventually(async () => {
      const { groups } = await cluster.call('GET', '/api/v1/groups?limit=1000')
      return !groups.some((one: { consumerGroup: string }) => one.consumerGroup === 'forgotten')
    })
    done()
  })

  test('incident: PostgreSQL is slow', async (t) => {
    const queue = unique('slow')
    await cluster.push(queue)
    await cluster.sql.query(`
      create function public.delay_inserts() returns trigger language plpgsql
        as 'begin perform pg_sleep(0.6); return null; end';
      create trigger delay_inserts after insert on rouse.messages
        for each statement execute function public.delay_inserts()`)
    let isOver = false
    const load = Promise.all(
      cluster.nodes.map(async ({ url }) => {
        while (!isOver) {
          const body = JSON.stringify({ items: [{ queue, payload: 1 }] })
          const headers = { 'content-type': 'application/json' }
          await fetch(`${url}/api/v1/push`, { method: 'POST', headers, body }).catch(() => {})
        }
      }),
    )
    t.teardown(async () => {
      isOver = true
      await load
      await cluster.sql.query('drop function if exists public.delay_inserts cascade')
    })
    const { page, done } = await follow(t, 'PostgreSQL is slow')
    await page
      .getByText(/PostgreSQL is slow: rouse\.push\w* takes/)
      .first()
      .waitFor()
    await page.getByText('pg_blocking_pids').first().waitFor()
    await page.getByText('rouse doctor').first().waitFor()
    done()
  })

  test('incident: a node is cut off from gossip', async (t) => {
    const flags = ['--node-id=stranger', '--gossip-port=0', `--gossip-secret=${'x'.repeat(40)}`]
    const node = await cluster.addNode(t, flags)
    const { page, done } = await follow(t, /Node stranger is cut off/)
    await page
      .getByText(/Node stranger is cut off from node-\d/)
      .first()
      .waitFor()
    await page.getByText('ROUSE_GOSSIP_SECRET').first().waitFor()
    done()
    await node.stop()
  })
}
