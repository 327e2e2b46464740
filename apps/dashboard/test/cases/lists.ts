// 10,000 queues: few rows in the document, and no task that blocks the page.
import { test } from 'tap'
import { openPage } from '../support/browser.ts'
import { at, type Context } from '../support/context.ts'
import { traceTasks } from '../support/tasks.ts'

const queues = 10_000
const rowsMax = 100
const taskMsMax = 100

/** Copies of one queue, because 10,000 requests would take longer than the test. */
async function copyQueue({ sql }: Context['cluster'], name: string, count: number): Promise<void> {
  const { rows } = await sql.query(
    `select string_agg(quote_ident(attname), ', ') as columns from pg_attribute
      where attrelid = 'rouse.queues'::regclass and attnum > 0 and not attisdropped
        and attgenerated = '' and attidentity = '' and attname <> 'name'`,
  )
  const columns = String(rows[0].columns)
  await sql.query(
    `insert into rouse.queues (name, ${columns})
     select $1 || '-' || to_char(n, 'FM00000'), ${columns}
     from rouse.queues, generate_series(1, $2::integer) n where name = $1`,
    [name, count],
  )
}

export function listTests({ cluster, browser }: Context): void {
  test('10,000 queues scroll with at most 100 rows and no long task', async (t) => {
    await cluster.push('many')
    await copyQueue(cluster, 'many', queues)
    t.teardown(() => cluster.sql.query(`delete from rouse.queues where name like 'many-%'`))
    const { page, problems } = await openPage(
      t,
      browser,
      at(cluster.url, 'queues', { sort: 'queue', search: 'many-' }),
    )
    await page.getByText('10,000 queues').waitFor()
    const body = page.locator('.table-body').first()
    let most = 0
    const tasks = await traceTasks(browser, page, async () => {
      for (let step = 0; step <= 40; step += 1) {
        await body.evaluate((element, part) => {
          const scrolled = element as unknown as { scrollTop: number; scrollHeight: number }
          scrolled.scrollTop = scrolled.scrollHeight * part
        }, step / 40)
        most = Math.max(most, await page.locator('.table-body .row').count())
      }
      await page.getByRole('link', { name: 'many-10000' }).waitFor()
    })
    t.ok(most <= rowsMax, `${most} rows`)
    const longest = tasks.toSorted((a, b) => b.cpuMs - a.cpuMs).slice(0, 5)
    t.ok(tasks.length > 40, `${tasks.length} tasks`)
    t.ok((longest[0]?.cpuMs ?? 0) <= taskMsMax, `longest tasks: ${JSON.stringify(longest)}`)
    t.same(problems, [])
  })
}
