// The one connection that LISTENs, so that what SQL producers commit is heard at once.
//
//   down → connecting   after a pause that grows with every failure, and is never twice the same
//   connecting → up     LISTEN was answered: whatever was missed is to be looked for
//   up → down           the connection broke, or a beat did not come back
import pg from 'pg'
import type { Logger } from '../log.ts'
import { beat, listen, scheduledChannel } from '../statements/listen.ts'
import type { Service } from './service.ts'

const connectMsMax = 5_000
const pauseMsMin = 100
const pauseMsMax = 5_000
const beatEveryMs = 10_000
const beatMsMax = 5_000

export interface ListenerOptions {
  readonly url: string
  readonly applicationName: string
  readonly log: Logger
  readonly random: () => number
  /** Something is due at this time by the database's clock, in ms since 1970; 0: now. */
  readonly onDue: (dueAtMs: number) => void
  readonly onUp: () => void
  readonly onDown: () => void
  readonly beatEveryMs?: number
}

export interface Listener extends Service {
  state(): 'up' | 'down'
}

export function createListener(options: ListenerOptions): Listener {
  const { log, random, onDue, onUp, onDown } = options
  let running = false
  let client: pg.Client | undefined
  let isUp = false
  let isTold = false
  let failures = 0
  let timer: NodeJS.Timeout | undefined
  let echoes = 0

  async function connect(): Promise<void> {
    const next = new pg.Client({
      connectionString: options.url,
      application_name: options.applicationName,
      connectionTimeoutMillis: connectMsMax,
      query_timeout: beatMsMax,
      keepAlive: true,
    })
    const echo = `rouse_echo_${Math.floor(random() * 0xffff_ffff).toString(16)}`
    client = next
    next.on('error', (error) => lost(next, error.message))
    next.on('end', () => lost(next, 'the connection ended'))
    next.on('notification', ({ channel, payload = '' }) => {
      if (channel === scheduledChannel) onDue(/^\d{1,15}$/.test(payload) ? Number(payload) : 0)
      else if (channel === echo) echoes += 1
    })
    try {
      await next.connect()
      await listen(next, echo)
      await hearOurselves(next, echo)
    } catch (error) {
      lost(next, (error as Error).message)
      return
    }
    if (client !== next) return
    isUp = true
    failures = 0
    if (isTold) log.info('LISTEN is back')
    isTold = false
    timer = setTimeout(() => void keepBeating(next, echo), options.beatEveryMs ?? beatEveryMs)
    onUp()
  }

  async function keepBeating(on: pg.Client, echo: string): Promise<void> {
    try {
      await hearOurselves(on, echo)
    } catch (error) {
      lost(on, (error as Error).message)
      return
    }
    if (client !== on) return
    timer = setTimeout(() => void keepBeating(on, echo), options.beatEveryMs ?? beatEveryMs)
  }

  async function hearOurselves(on: pg.Client, echo: string): Promise<void> {
    const before = echoes
    await beat(on, echo)
    if (echoes === before) {
      throw new Error('a notification did not come back: is a pooler in between? ROUSE_LISTEN_URL')
    }
  }

  function lost(which: pg.Client, reason: string): void {
    if (client !== which) return
    client = undefined
    isUp = false
    clearTimeout(timer)
    which.end().catch(() => {})
    if (!running) return
    if (!isTold) log.warn({ reason }, 'LISTEN is lost; SQL producers are noticed by looking')
    isTold = true
    onDown()
    const pauseMs = Math.min(pauseMsMax, pauseMsMin * 2 ** failures) * (0.5 + random() / 2)
    failures += 1
    timer = setTimeout(() => void connect(), pauseMs)
  }

  return {
    state: () => (isUp ? 'up' : 'down'),
    async start() {
      if (running) return
      running = true
      await connect()
    },
    async stop() {
      running = false
      clearTimeout(timer)
      const last = client
      client = undefined
      isUp = false
      await last?.end().catch(() => {})
    },
  }
}
