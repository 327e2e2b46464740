// Why a queue does not move, for five causes, each with the action that ends it.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { openPage } from '../support/browser.ts'
import { at, type Context, unique } from '../support/context.ts'

/** Longer than the nodes need to record every step. */
const delayMs = 1_500

export function whyTests({ cluster, browser }: Context): void {
  const open = (t: Parameters<typeof openPage>[0], queue: string) =>
    openPage(t, browser, at(cluster.url, `queues/${queue}`))

  test('why: paused, and the button resumes the queue', async (t) => {
    const queue = unique('why-paused')
    await cluster.push(queue)
    await cluster.call('POST', `/api/v1/queues/${queue}/pause`)
    const { page, problems } = await open(t, queue)
    await page.getByText('The queue is paused', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Resume the queue' }).click()
    await page.getByText('The queue is paused', { exact: true }).waitFor({ state: 'detached' })
    t.equal((await cluster.call('GET', `/api/v1/queues/${queue}`)).paused, false)
    t.same(problems, [])
  })

  test('why: a failed message holds its partition, and can be cancelled', async (t) => {
    const queue = unique('why-held')
    await cluster.call('PUT', `/api/v1/queues/${queue}`, { options: { retryBackoffMs: [600_000] } })
    await cluster.push(queue, 2, { partition: 'p' })
    await cluster.fail(queue, { error: 'cannot parse', errorCode: 'BAD' })
    const { page, problems } = await open(t, queue)
    await page.getByText('A failed message holds its partition').waitFor()
    await page.getByText('Partition "p" is held by message').waitFor()
    await page.getByRole('button', { name: 'Cancel the message' }).click()
    await page.getByText('A failed message holds its partition').waitFor({ state: 'detached' })
    const { messages } = await cluster.call('GET', `/api/v1/pop/queue/${queue}`)
    t.same(messages[0].data, { n: 1 }, 'the message behind it is delivered')
    t.same(problems, [])
  })

  test('why: no consumer, with the command that starts one', async (t) => {
    const queue = unique('why-alone')
    await cluster.push(queue)
    const { page } = await open(t, queue)
    await page.getByText('No consumer', { exact: true }).waitFor()
    t.ok(await page.getByText(`rouse pop '${queue}' --wait 30`).isVisible())
  })

  test('why: the limit of running messages, which the options change', async (t) => {
    const queue = unique('why-limit')
    await cluster.call('PUT', `/api/v1/queues/${queue}`, { options: { maxInFlight: 1 } })
    await cluster.push(queue, 2)
    await cluster.call('GET', `/api/v1/pop/queue/${queue}`)
    const { page, problems } = await open(t, queue)
    await page.getByText('The limit of running messages is reached').waitFor()
    const options = page.getByLabel('Options as JSON')
    await options.fill((await options.inputValue()).replace('"maxInFlight": 1', '"maxInFlight": 5'))
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByText('The limit of running messages is reached').waitFor({ state: 'detached' })
    t.equal((await cluster.call('GET', `/api/v1/queues/${queue}`)).options.maxInFlight, 5)
    t.same(problems, [])
  })

  test('why: nothing is due, with the way to run a message now', async (t) => {
    const queue = unique('why-due')
    const [id = ''] = await cluster.push(queue, 1, { delayMs: 3_600_000 })
    const { page, problems } = await open(t, queue)
    await page.getByText('Nothing is due yet').waitFor()
    await page.getByRole('link', { name: /See the scheduled messages/ }).click()
    await page.getByRole('link', { name: id }).click()
    await page.getByRole('button', { name: 'Run now' }).click()
    await page.getByText('ready', { exact: true }).first().waitFor()
    t.same(problems, [])
  })

  test('why one message took long, for five causes', async (t) => {
    const names = ['due', 'stopped', 'alone', 'failing', 'behind']
    const queues = names.map((name) => unique(name))
    const [scheduled = '', paused = '', alone = '', retried = '', held = ''] = queues
    await cluster.call('PUT', `/api/v1/queues/${paused}`, {})
    await cluster.call('POST', `/api/v1/queues/${paused}/pause`)
    const options = { retryBackoffMs: [delayMs] }
    for (const queue of [retried, held]) {
      await cluster.call('PUT', `/api/v1/queues/${queue}`, { options })
    }
    const [dueId] = await cluster.push(scheduled, 1, { delayMs })
    const [pausedId] = await cluster.push(paused)
    const [aloneId] = await cluster.push(alone)
    const [retriedId] = await cluster.push(retried)
    const [, heldId] = await cluster.push(held, 2, { partition: 'p' })
    await cluster.fail(retried, { error: 'later', errorCode: 'LATER' })
    await cluster.fail(held, { error: 'later', errorCode: 'LATER' })
    // The time that the messages wait is what the page shows.
    await eventually(async () => {
      return (await cluster.call('GET', `/api/v1/messages/${aloneId}/why`)).totalMs > delayMs
    })
    await cluster.call('POST', `/api/v1/queues/${paused}/resume`)
    for (const queue of [...queues, held]) {
      await cluster.call('GET', `/api/v1/pop/queue/${queue}?wait=true&timeout=10000&autoAck=true`)
    }
    const { page, problems } = await openPage(t, browser, at(cluster.url, 'messages'))
    for (const [id, cause] of [
      [dueId, 'scheduled'],
      [pausedId, 'paused'],
      [aloneId, 'no consumer'],
      [retriedId, 'retry delay'],
      [heldId, 'partition held'],
    ]) {
      await page.goto(at(cluster.url, `messages/${id}`))
      const shown = page.getByText('Longest cause:')
      await shown.waitFor()
      t.match(await shown.textContent(), `Longest cause: ${cause}.`, String(id))
      t.ok(await page.locator('.timeline li').count())
    }
    t.same(problems, [])
  })
}
