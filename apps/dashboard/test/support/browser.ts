// Chromium, if the machine has one. The tests install nothing: without a browser they are skipped, with the command
// that installs one.
import { existsSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'
import type { Test } from 'tap'

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const executablePath = places.find((path) => existsSync(path))

/** Why the tests cannot run; false if they can. */
export const browserMissing: string | false =
  executablePath === undefined
    ? 'there is no Chromium: apt-get update && apt-get install -y chromium'
    : false

const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Playwright makes a new folder for the data of each browser. */
export async function startBrowser(t: Test): Promise<Browser> {
  if (executablePath === undefined) throw new Error(String(browserMissing))
  const browser = await chromium.launch({ executablePath, args: flags })
  t.teardown(() => browser.close())
  return browser
}

export interface WatchedPage {
  readonly page: Page
  /** Errors in the console, uncaught errors, and dialogs that a script has opened. */
  readonly problems: string[]
}

const patienceMs = 15_000

/** A page of its own context. */
export async function openPage(
  t: Test,
  browser: Browser,
  address: string,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })
  t.teardown(() => context.close())
  const page = await context.newPage()
  page.setDefaultTimeout(patienceMs)
  const problems: string[] = []
  page.on('console', (message) => {
    const { url } = message.location()
    const text = `console: ${message.text()} ${url}`
    // A node under load refuses a reading (503); the page then shows the last one. A stream may be cut at any time; the
    // page opens it again.
    const isExpected = text.includes('status of 503') || /net::\S+ \S+\/api\/v1\/events/.test(text)
    if (message.type() === 'error' && !isExpected) problems.push(text)
  })
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`))
  page.on('dialog', (dialog) => {
    problems.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  await page.goto(address)
  return { page, problems }
}
