// The steps of `npm run test:compose`, in this order. A step throws, or returns what it measured.
import { accessSteps } from './access-steps.mjs'
import { composeBlocks } from './checkout.mjs'
import { ackAll, ask, expect, pop, push, stats, until } from './http.mjs'
import { imageSteps } from './image-steps.mjs'
import { Load } from './load.mjs'
import { killedRules, rolledRules } from './rules.mjs'

const hangUps = 30
const wakeRounds = 5
/** The maximum time of a wake-up by gossip. Without gossip the next fallback poll is up to 5 s away. */
const wakeMsMax = 1_000

/** The blocks of docs/quick-start.md that need Docker, in their order. */
const blocks = composeBlocks('docs/quick-start.md')
const commands = blocks.map(({ code }) => code)

export const steps = [
  {
    title: 'the image is built',
    isNeeded: true,
    run: (cluster) => cluster.build(),
  },
  {
    title: 'the commands of the quick start start it, and the balancer sees all nodes ready',
    isNeeded: true,
    async run(cluster) {
      await cluster.up(commands[0])
      for (const node of cluster.nodes) await untilReady(cluster, node)
      await untilReady(cluster, 'balancer')
    },
  },
  {
    title: 'the other commands of the quick start print what they should',
    run: followQuickStart,
  },
  ...imageSteps,
  {
    title: 'the engine reports every node healthy',
    async run(cluster) {
      for (const node of cluster.nodes) {
        await until(`${node} is healthy`, async () => {
          return (await cluster.inspect(node, '{{.State.Health.Status}}')) === 'healthy'
        })
      }
    },
  },
  ...accessSteps,
  {
    title: 'a message pushed through the balancer is popped on each node',
    async run(cluster) {
      for (const node of cluster.nodes) {
        const queue = `to-${node}`
        const payload = { for: node }
        const [answer] = await waiter(cluster.url(node), queue)
        await push(cluster.url('balancer'), [{ queue, payload }])
        const { status, json } = await answer
        expect(status === 200, `the poll returned ${status}`)
        expect(json.messages[0].data.for === node, 'another message was delivered')
        await ackAll(cluster.url(node), json.messages)
      }
    },
  },
  {
    title: 'a push on one node wakes a poll on another',
    run: wakeAcross,
  },
  {
    title: 'a client that hangs up after its response keeps its lease',
    run: hangUp,
  },
  {
    title: 'polls are spread over the nodes, end if their client leaves, and may last over 30 s',
    run: spreadPolls,
  },
  {
    title: 'a node killed under load loses no message, and the others continue',
    run: killOne,
  },
  {
    title: 'nodes restarted one after another fail no request, and lose or duplicate no message',
    run: rollAll,
  },
]

async function followQuickStart(cluster) {
  for (const { code, output } of blocks.slice(1)) {
    const printed = await cluster.shell(code)
    const missing = output.filter((line) => !printed.includes(line))
    expect(missing.length === 0, `${code} printed ${printed}, without ${missing.join(', ')}`)
  }
  return `${blocks.length} blocks`
}

/** Pushes on each node for a poll on each other node, several times. Only gossip can be that fast. */
async function wakeAcross(cluster) {
  for (const node of cluster.nodes) {
    await until(`${node} hears its peers`, async () => {
      const { mode, peers } = await stats(cluster.url(node))
      return mode.mode === 'healthy' && peers.filter(({ state }) => state === 'alive').length === 2
    })
  }
  const wokenBefore = await wokenByPeers(cluster)
  const tookMs = []
  for (let round = 0; round < wakeRounds; round += 1) {
    for (const from of cluster.nodes) {
      for (const to of cluster.nodes.filter((node) => node !== from)) {
        tookMs.push(await wakeMs(cluster.url(from), cluster.url(to), `from-${from}-to-${to}`))
      }
    }
  }
  tookMs.sort((a, b) => a - b)
  const slowest = tookMs.at(-1)
  expect(slowest < wakeMsMax, `the slowest wake-up took ${slowest} ms`)
  const woken = (await wokenByPeers(cluster)) - wokenBefore
  expect(woken >= tookMs.length / 2, `only ${woken} of ${tookMs.length} wake-ups came by gossip`)
  return `${tookMs.length} times, median ${tookMs[tookMs.length >> 1]} ms, slowest ${slowest} ms`
}

async function wakeMs(fromUrl, toUrl, queue) {
  const [answer] = await waiter(toUrl, queue)
  const startedAt = Date.now()
  await push(fromUrl, [{ queue, payload: 'wake' }])
  const { status, json } = await answer
  const tookMs = Date.now() - startedAt
  expect(status === 200, `the poll returned ${status}`)
  await ackAll(toUrl, json.messages)
  return tookMs
}

async function wokenByPeers(cluster) {
  const all = await Promise.all(cluster.nodes.map((node) => stats(cluster.url(node))))
  return sum(all.map(({ wakes }) => wakes.udp))
}

/**
 * The client closes its connection after the response, as curl does. The balancer must not make it seem that
 * the client did not read the response.
 */
async function hangUp(cluster) {
  const url = cluster.url('balancer')
  const popped = []
  for (let n = 0; n < hangUps; n += 1) {
    await push(url, [{ queue: 'once', partition: `p${n}`, payload: n }])
    const { status, json } = await pop(url, 'once', { timeoutMs: 5_000, hangsUp: true })
    expect(status === 200, `a pop returned ${status}`)
    popped.push(...json.messages)
  }
  await ackAll(url, popped)
  return `${popped.length} times`
}

/**
 * A third of the polls go to each node. Abandoned polls disappear from their node. The others last longer
 * than the usual 30 s.
 */
async function spreadPolls(cluster) {
  const perNode = 10
  const timeoutMs = 35_000
  const leaving = Array.from({ length: (perNode * 3) / 2 }, () => new AbortController())
  const startedAt = Date.now()
  const poll = (signal) => pop(cluster.url('balancer'), 'idle', { timeoutMs, signal })
  const abandoned = leaving.map(({ signal }) => poll(signal))
  const patient = leaving.map(() => poll())
  const waiting = async () => {
    const all = await Promise.all(cluster.nodes.map((node) => stats(cluster.url(node))))
    return all.map((node) => node.waiting.by_queue.idle ?? 0)
  }
  await until('all polls wait', async () => sum(await waiting()) === perNode * 3, 10_000)
  const spread = await waiting()
  expect(Math.min(...spread) >= perNode - 2, `the polls were spread ${spread.join(', ')}`)

  for (const client of leaving) client.abort()
  await Promise.allSettled(abandoned)
  await until(
    'the nodes dropped the abandoned polls',
    async () => sum(await waiting()) === patient.length,
    5_000,
  )

  const statuses = new Set((await Promise.all(patient)).map(({ status }) => status))
  expect(statuses.size === 1 && statuses.has(204), `polls ended with ${[...statuses].join(', ')}`)
  expect(Date.now() - startedAt >= timeoutMs, 'the polls ended early')
  return spread.join(' + ')
}

function killOne(cluster) {
  return underLoad(cluster, 'killed', killedRules(), async (load) => {
    await load.progress(300)
    await cluster.kill('node2')
    await load.progress(600)
    const account = await load.finish()
    await startAgain(cluster, 'node2')
    return account
  })
}

function rollAll(cluster) {
  return underLoad(cluster, 'rolled', rolledRules(), async (load) => {
    let slowestMs = 0
    for (const node of cluster.nodes) {
      await load.progress(200)
      const startedAt = Date.now()
      const code = await cluster.stop(node)
      slowestMs = Math.max(slowestMs, Date.now() - startedAt)
      // 137 would mean that the engine had to kill the node.
      expect(code === 0, `${node} exited with ${code}`)
      await load.progress(200)
      await startAgain(cluster, node)
      await untilUsed(cluster, node)
    }
    return `${await load.finish()}; drained within ${slowestMs} ms`
  })
}

async function underLoad(cluster, queue, rules, run) {
  const load = new Load({ url: cluster.url('balancer'), queue, rules })
  await load.start()
  try {
    return await run(load)
  } finally {
    load.abandon()
  }
}

async function startAgain(cluster, node) {
  await cluster.start(node)
  await untilReady(cluster, node)
}

function untilReady(cluster, service) {
  return until(`${service} is ready`, async () => {
    return (await ask(`${cluster.url(service)}/ready`)).status === 200
  })
}

/** Waits until the balancer sends pops to the node again. */
function untilUsed(cluster, node) {
  return until(`${node} has work`, async () => {
    const { queries } = await stats(cluster.url(node))
    return Object.keys(queries).length > 0
  })
}

/**
 * Starts a poll and resolves when it waits. The poll is inside a list: a bare promise would be awaited, too.
 */
async function waiter(url, queue) {
  const answer = pop(url, queue, { timeoutMs: 30_000 })
  await until(`a poll waits for ${queue}`, async () => {
    return (await stats(url)).waiting.by_queue[queue] === 1
  })
  return [answer]
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0)
}
