import type { Api, Json } from '../api.ts'
import { absence } from '../format.ts'
import type { ToldNode } from './database-checks.ts'
import { type Finding, fine, problem, warning } from './finding.ts'

const skewMsMax = 1_000

export async function checkNodes(api: Api): Promise<Finding[]> {
  try {
    await api.get('/live')
  } catch (error) {
    const fix = 'start one (npm start, rouse serve), or give its address by --url or ROUSE_URL'
    return [problem('node', (error as Error).message, fix)]
  }
  return [await checkReady(api), ...(await checkCluster(api))]
}

/** What each node that answers was told. */
export async function readNodes(api: Api): Promise<ToldNode[]> {
  try {
    const { body } = await api.get('/stats?scope=cluster')
    return body.nodes.map(
      ({ node, connections_max: connections, queue_defaults: defaults }: Json) => ({
        node,
        connections,
        defaults,
      }),
    )
  } catch {
    return []
  }
}

async function checkReady(api: Api): Promise<Finding> {
  try {
    await api.get('/ready')
    return fine('ready', `${api.url} takes messages`)
  } catch (error) {
    const fix = 'look at PostgreSQL, and at the log of the node'
    return problem('ready', `${api.url} takes no messages: ${(error as Error).message}`, fix)
  }
}

async function checkCluster(api: Api): Promise<Finding[]> {
  const { body } = await api.get('/stats?scope=cluster')
  return [
    ...body.nodes.map(checkMode),
    ...body.nodes.flatMap((node: Json) =>
      node.peers.flatMap((peer: Json) => checkPeer(node, peer)),
    ),
    ...body.unreachable.map(checkAbsent),
    ...versionsOf(body.nodes),
    ...checkDefaults(body.nodes),
    ...body.nodes.flatMap(checkSkew),
    ...checkRetention(body.nodes),
  ]
}

function checkMode({ node, mode }: Json): Finding {
  if (mode.mode === 'healthy') return fine('mode', `${node} is healthy`)
  return warning(
    'mode',
    `${node} looks for messages more often than it should have to: ${mode.why.join(', ')}`,
    'peer_silent: gossip does not get through; listener_lost: LISTEN does not; the others pass by themselves',
  )
}

function checkPeer({ node }: Json, { id, state, hearsUs, rttMs }: Json): Finding[] {
  if (state === 'left' || state === 'dead') return []
  if (state === 'alive' && hearsUs === true) {
    return [
      fine('gossip', `${node} and ${id} hear each other (${Number(rttMs ?? 0).toFixed(1)} ms)`),
    ]
  }
  const what = state === 'alive' ? `${id} does not hear ${node}` : `${node} does not hear ${id}`
  return [
    problem(
      'gossip',
      what,
      'let UDP through between the nodes; the same ROUSE_GOSSIP_SECRET on each?',
    ),
  ]
}

/** A dead one may be meant to be gone: nobody tells apart who was killed and who was taken away. */
function checkAbsent({ id, state, error }: Json): Finding {
  if (state === 'dead') {
    const fix = 'start it again; if it is gone for good, it is forgotten after an hour'
    return warning('dead', absence({ id, state, error }), fix)
  }
  return problem(
    'http',
    `${id} does not answer over HTTP: ${error}`,
    'is it running, and its ROUSE_ADVERTISE_URL right?',
  )
}

function versionsOf(nodes: readonly Json[]): Finding[] {
  const versions = [...new Set(nodes.map(({ version }) => version))]
  if (versions.length <= 1) return []
  return [warning('version', `the nodes run ${versions.join(' and ')}`, 'finish the upgrade')]
}

/** A node of an earlier release does not say what its defaults are. */
function checkDefaults(nodes: readonly Json[]): Finding[] {
  const known = nodes.filter((node) => node.queue_defaults !== undefined)
  const names = [...new Set(known.flatMap((node) => Object.keys(node.queue_defaults)))].sort()
  return names.flatMap((name) => {
    const values = known.map((node) => JSON.stringify(node.queue_defaults[name]) ?? 'not set')
    if (new Set(values).size <= 1) return []
    const said = known.map(({ node }, i) => `${node}: ${values[i]}`)
    return [
      warning(
        'defaults',
        `the nodes disagree about the default of ${name} for new queues (${said.join(', ')})`,
        'give every node the same ROUSE_DEFAULT_*; until then the node that started last decides',
      ),
    ]
  })
}

/** As far as the node tells its distance from the database's clock. */
function checkSkew({ node, database_clock: clock }: Json): Finding[] {
  const skewMs = Number(clock?.offsetMs ?? Number.NaN)
  if (Number.isNaN(skewMs)) return []
  if (Math.abs(skewMs) <= skewMsMax)
    return [fine('clock', `${node} and the database agree on the time`)]
  return [
    warning(
      'clock',
      `${node} is ${Math.round(skewMs)} ms from the database`,
      'run a time service (chrony, ntpd)',
    ),
  ]
}

/** Nodes name the same groups, as each read them a minute ago at most. */
function checkRetention(nodes: readonly Json[]): Finding[] {
  const groups = new Map<string, Json>()
  for (const group of nodes.flatMap(({ retention }) => retention?.held_by ?? [])) {
    groups.set(JSON.stringify([group.queue, group.consumerGroup]), group)
  }
  return [...groups.values()].map(checkHolding)
}

function checkHolding(group: Json): Finding {
  const { queue, consumerGroup, lastSeenAt, messages, isPartial, oldestAt, until } = group
  const end = until === null ? 'for ever' : `until ${until}`
  return warning(
    'retention',
    `consumer group "${consumerGroup}" of queue "${queue}" has made no request since ${lastSeenAt} and keeps ` +
      `${isPartial ? 'at least ' : ''}${messages} messages from retention, the oldest of ${oldestAt}, ${end}`,
    'start its consumers, or delete the group if it is not needed; ROUSE_IDLE_GROUP_SECONDS sets how long it may keep them',
  )
}
