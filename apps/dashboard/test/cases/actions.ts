// What operators do from the page, end to end.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { openPage } from '../support/browser.ts'
import { at, type Context, unique } from '../support/context.ts'

export function actionTests({ cluster, browser }: Context): void {
  test('a message is pushed from the page, and its numbers keep all digits', async (t) => {
    const queue = unique('pushed')
    const { page, problems } = await openPage(t, browser, at(cluster.url, 'queues'))
    await page.locator('input[name=push-queue]').fill(queue)
    await page.locator('textarea[name=push-payload]').fill('{"big": 12345678901234567890}')
    await page.getByRole('button', { name: 'Push', exact: true }).click()
    await page.getByRole('status').getByRole('link').click()
    await page.getByText('12345678901234567890').waitFor()
    const { rows } = await cluster.sql.query(
      'select count(*)::integer as count from rouse.queues where name = $1',
      [queue],
    )
    t.same(rows, [{ count: 1 }])
    t.same(problems, [])
  })

  test('dead letters are counted, redriven at a rate, and delivered again', async (t) => {
    const queue = unique('redriven')
    await cluster.call('PUT', `/api/v1/queues/${queue}`, { options: { retryLimit: 0 } })
    await cluster.push(queue, 4)
    for (let i = 0; i < 4; i += 1) {
      const errorCode = i === 0 ? 'OTHER' : 'SMTP_452'
      await cluster.fail(queue, { error: 'mailbox full', errorCode })
    }
    const { page, problems } = await openPage(t, browser, at(cluster.url, 'overview'))
    await page.getByRole('listitem').filter({ hasText: queue }).getByRole('link').click()
    await page.getByRole('link', { name: 'SMTP_452' }).click()
    await page.getByRole('button', { name: 'Count (dry run)' }).click()
    await page.getByText('3 dead letters match now').waitFor()
    await page.getByRole('button', { name: 'Redrive 3 messages' }).click()
    await page.getByText('3 of 3').waitFor()
    for (let i = 0; i < 3; i += 1) {
      await cluster.call('GET', `/api/v1/pop/queue/${queue}?wait=true&timeout=5000&autoAck=true`)
    }
    const { dead, ready } = await cluster.call('GET', `/api/v1/queues/${queue}`)
    t.same({ dead, ready }, { dead: 1, ready: 0 }, 'the other error stayed')
    t.same(problems, [])
  })

  test('a queue is deleted only after its name was typed', async (t) => {
    const queue = unique('deleted')
    await cluster.push(queue, 3)
    const { page } = await openPage(t, browser, at(cluster.url, `queues/${queue}`))
    await page.getByRole('button', { name: 'Delete …' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('3 ready messages').waitFor()
    const button = dialog.getByRole('button', { name: 'Delete queue' })
    t.equal(await button.isDisabled(), true)
    await dialog.getByRole('textbox').fill(`${queue}x`)
    t.equal(await button.isDisabled(), true)
    await dialog.getByRole('textbox').fill(queue)
    await button.click()
    await page.getByRole('heading', { name: 'Queues', level: 1 }).waitFor()
    t.equal((await fetch(`${cluster.url}/api/v1/queues/${queue}`)).status, 404)
  })

  test('a scheduled message runs now, another is cancelled', async (t) => {
    const queue = unique('scheduled')
    const [first = '', second = ''] = await cluster.push(queue, 2, { delayMs: 3_600_000 })
    const { page } = await openPage(t, browser, at(cluster.url, `messages/${first}`))
    await page.getByRole('button', { name: 'Run now' }).click()
    await page.getByText('ready', { exact: true }).first().waitFor()
    await page.goto(at(cluster.url, `messages/${second}`))
    await page.getByRole('button', { name: 'Cancel …' }).click()
    await page.getByRole('button', { name: 'Cancel message' }).click()
    await page.getByText('cancelled', { exact: true }).first().waitFor()
    t.equal((await cluster.call('GET', `/api/v1/messages/${second}`)).state, 'cancelled')
  })

  test('hostile names and payloads are shown as text', async (t) => {
    const queue = `<img src=x onerror=alert(1)>/../%2e%00?#&"'`
    const group = '"><script>alert(2)</script>'
    const path = encodeURIComponent(queue)
    await cluster.call('PUT', `/api/v1/queues/${path}`, { options: { retryBackoffMs: [600_000] } })
    await cluster.push(queue, 1, {
      payload: '</script><svg onload=alert(3)>',
      partition: '{{7*7}}',
    })
    await cluster.call(
      'GET',
      `/api/v1/pop/queue/${path}?consumerGroup=${encodeURIComponent(group)}`,
    )
    await cluster.fail(queue, { error: '<b onmouseover=alert(4)>x</b>', errorCode: '<i>' })
    const { page, problems } = await openPage(t, browser, at(cluster.url, 'queues'))
    await page.getByRole('link', { name: queue, exact: true }).click()
    await page.getByRole('heading', { name: queue, level: 1 }).waitFor()
    await page.getByText('<b onmouseover=alert(4)>x</b>').first().waitFor()
    await page.getByRole('link', { name: 'Messages', exact: true }).last().click()
    await page.getByText('</script><svg onload=alert(3)>').first().waitFor()
    await page.goto(at(cluster.url, 'groups', { queue }))
    await page.getByRole('link', { name: group, exact: true }).click()
    await page.getByText(`Group ${group} of queue ${queue}`).waitFor()
    t.equal(await page.locator('img[src=x], svg[onload], main script, main b').count(), 0)
    t.same(problems, [])
    await cluster.call('DELETE', `/api/v1/queues/${path}`)
  })

  test('a paused page reads nothing until it is resumed', async (t) => {
    const queue = unique('still')
    await cluster.push(queue)
    const { page } = await openPage(t, browser, at(cluster.url, `queues/${queue}`))
    // Timers that are set before cannot be cleared after.
    await page.clock.install()
    await page.reload()
    await page.getByText('No consumer').first().waitFor()
    await page.getByRole('button', { name: /^Updates/ }).click()
    await page.waitForLoadState('networkidle')
    const requests: string[] = []
    page.on('request', (request) => requests.push(request.url()))
    await cluster.call('POST', `/api/v1/queues/${queue}/pause`)
    await page.evaluate('dispatchEvent(new Event("focus"))')
    await page.clock.runFor(60_000)
    t.same(requests, [])
    await page.getByRole('button', { name: /^Paused/ }).click()
    await page.getByText('The queue is paused', { exact: true }).waitFor()
    await eventually(() => requests.length > 0)
  })
}
