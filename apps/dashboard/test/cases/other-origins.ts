// A page of another origin, in the browser of someone who runs an open node on the same machine.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { openPage } from '../support/browser.ts'
import { type Context, unique } from '../support/context.ts'

/** The address of an empty page that no node serves. */
async function otherOrigin(t: Test): Promise<string> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html')
    response.end('<!doctype html><title>another</title>')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

export function otherOriginTests({ cluster, browser }: Context): void {
  test('a page of another origin neither pops nor pauses, at any address of the node', async (t) => {
    const queue = unique('guarded')
    await cluster.push(queue, 5)
    const { page } = await openPage(t, browser, await otherOrigin(t))
    const { port } = new URL(cluster.url)
    const pop = `/api/v1/pop/queue/${queue}?autoAck=true`
    for (const host of ['127.0.0.1', 'localhost', '0.0.0.0', '[::ffff:127.0.0.1]']) {
      // As text, because the tests have no types of the browser. Each resolves when the response has arrived.
      await page.evaluate(`new Promise((resolve) => {
        new WebSocket('ws://${host}:${port}${pop}').addEventListener('close', resolve)
      })`)
      await page.evaluate(
        `fetch('http://${host}:${port}${pop}', { mode: 'no-cors' }).catch(() => {})`,
      )
      await page.evaluate(
        `fetch('http://${host}:${port}/api/v1/queues/${queue}/pause', { method: 'POST', mode: 'no-cors' }).catch(() => {})`,
      )
    }
    const found = await cluster.call('GET', `/api/v1/queues/${queue}`)
    t.match(found, { paused: false, ready: 5, leased: 0 })
  })
}
