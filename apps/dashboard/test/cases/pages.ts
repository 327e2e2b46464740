// Every page shows its data, in time, without an error, on desktops and phones.
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { csrfHeader } from '@rouse/protocol'
import { test } from 'tap'
import { csrfHeader as ownCsrfHeader } from '../../src/api/csrf.ts'
import { openPage } from '../support/browser.ts'
import { at, type Context, unique } from '../support/context.ts'

const dist = new URL('../../dist/', import.meta.url)
const bytesMax = 90_000
const firstDataMsMax = 1_000
const loadsMax = 12
/** Above this load average, times say nothing about the page. */
const loadPerCoreMax = 3

export function pageTests({ cluster, browser }: Context): void {
  test('the bundle has at most 90 kB gzipped', async (t) => {
    const sizes = readdirSync(fileURLToPath(dist)).map(
      (name) => gzipSync(readFileSync(new URL(name, dist))).length,
    )
    const total = sizes.reduce((sum, size) => sum + size, 0)
    t.ok(total <= bytesMax, `${total} bytes`)
    t.equal(ownCsrfHeader, csrfHeader)
  })

  test('every page shows its data, on a desktop and on a phone, without an error', async (t) => {
    const queue = unique('pages')
    const [id = ''] = await cluster.push(queue, 3)
    await cluster.call('PUT', '/api/v1/schedules/pages-nightly', { queue, cron: '@yearly' })
    const pages: [string, string][] = [
      ['overview', 'Needs attention'],
      ['queues', queue],
      [`queues/${queue}`, 'No consumer'],
      [`messages?queue=${queue}`, id],
      [`messages/${id}`, 'Timeline'],
      ['dead-letters', 'Dead letters'],
      ['groups', 'Group backoff'],
      ['schedules', 'pages-nightly'],
      ['cluster', 'node-3'],
      ['database', 'lanes'],
      ['keys', 'Create a key'],
      ['audit', queue],
    ]
    for (const viewport of [
      { width: 1280, height: 900 },
      { width: 375, height: 812 },
    ]) {
      const { page, problems } = await openPage(t, browser, at(cluster.url, 'overview'), {
        viewport,
      })
      for (const [address, text] of pages) {
        await page.goto(`${cluster.url}/dashboard/#/${address}`)
        await page.locator('main').getByText(text).first().waitFor()
        t.ok(await page.locator('.curl').count(), `${address} shows its curl`)
        const width = await page.evaluate<number>('document.documentElement.scrollWidth')
        t.ok(width <= viewport.width, `${address} is ${width} px wide on ${viewport.width} px`)
      }
      t.same(problems, [])
    }
  })

  test('the first data appears within a second of real time', async (t) => {
    const queue = unique('first')
    await cluster.push(queue)
    // Other tests use the machine at the same time, and can only make a load slower: the fastest one counts.
    const loadsMs: number[] = []
    while (loadsMs.length < loadsMax && Math.min(...loadsMs) > firstDataMsMax) {
      loadsMs.push(await firstDataMs(queue))
    }
    const shown = loadsMs.map((ms) => `${Math.round(ms)} ms`).join(', ')
    const perCore = (loadavg()[0] ?? 0) / availableParallelism()
    if (Math.min(...loadsMs) > firstDataMsMax && perCore > loadPerCoreMax) {
      const skip = `not measured, ${perCore.toFixed(1)} processes want each core: ${shown}`
      t.pass('within a second', { skip })
      return
    }
    t.ok(Math.min(...loadsMs) <= firstDataMsMax, shown)
  })

  /** From the start of the navigation until a queue is in the list, in a browser context without a cache. */
  async function firstDataMs(queue: string): Promise<number> {
    const context = await browser.newContext()
    const page = await context.newPage()
    const startedMs = performance.now()
    await page.goto(at(cluster.url, 'queues'), { waitUntil: 'commit' })
    await page.getByRole('link', { name: queue, exact: true }).waitFor()
    const ms = performance.now() - startedMs
    await context.close()
    return ms
  }

  test('filters are in the address, and the back button returns to the page before', async (t) => {
    const queue = unique('filtered')
    await cluster.push(queue)
    const { page } = await openPage(t, browser, at(cluster.url, 'queues'))
    await page.getByLabel('Name contains').fill(queue)
    await page.getByRole('link', { name: queue, exact: true }).waitFor()
    t.match(page.url(), `search=${queue}`)
    t.equal(await page.locator('.table-body .row').count(), 1)
    await page.getByRole('link', { name: queue, exact: true }).click()
    await page.getByRole('heading', { name: queue, level: 1 }).waitFor()
    await page.goBack()
    t.equal(await page.getByLabel('Name contains').inputValue(), queue)
  })

  test('the keyboard alone opens a queue', async (t) => {
    const queue = unique('keys')
    await cluster.push(queue)
    const { page } = await openPage(t, browser, at(cluster.url, 'overview'))
    await page.getByText('Needs attention').waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('q')
    await page.getByRole('heading', { name: 'Queues', level: 1 }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type(queue)
    await page.getByText('1 queue,').waitFor()
    await page.locator('.table-body .row').first().focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: queue, level: 1 }).waitFor()
  })

  test('the theme follows the system, and the switch', async (t) => {
    const { page } = await openPage(t, browser, at(cluster.url, 'overview'), {
      colorScheme: 'dark',
    })
    const back = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
    await page.getByText('Needs attention').waitFor()
    const dark = await back()
    await page.getByLabel('Colours').selectOption('light')
    t.not(await back(), dark)
    await page.reload()
    await page.getByText('Needs attention').waitFor()
    t.not(await back(), dark, 'the choice is kept')
  })
}
