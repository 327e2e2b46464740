import { get } from 'node:http'

const roundMs = 250
const answerMsMax = 1_000

export interface ReadinessWatch {
  isReady(url: string): boolean
  stop(): void
}

/** Polls `/ready` of every node, as a balancer does: a draining node answers 503 but still serves. */
export function watchReadiness(urls: readonly string[]): ReadinessWatch {
  const ready = new Set(urls)
  const timers = new Map<string, NodeJS.Timeout>()
  let stopped = false

  function ask(url: string): void {
    const request = get(`${url}/ready`, { agent: false, timeout: answerMsMax }, (response) => {
      response.resume()
      note(url, response.statusCode === 200)
    })
    request.once('timeout', () => request.destroy())
    request.once('error', () => note(url, false))
  }

  function note(url: string, isReady: boolean): void {
    if (isReady) ready.add(url)
    else ready.delete(url)
    clearTimeout(timers.get(url))
    if (!stopped)
      timers.set(
        url,
        setTimeout(() => ask(url), roundMs),
      )
  }

  for (const url of urls) ask(url)
  return {
    isReady: (url) => ready.has(url),
    stop() {
      stopped = true
      for (const timer of timers.values()) clearTimeout(timer)
    },
  }
}
