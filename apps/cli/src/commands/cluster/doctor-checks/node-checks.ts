import type { Api, Json } from '../../../api.ts'
import { absence } from '../../../format.ts'
import { checkAccess, checkTransport } from './access-checks.ts'
import { copyFound } from './copy-check.ts'
import type { ConfiguredNode } from './database-checks.ts'
import { type Finding, fine, problem, warning } from './finding.ts'

const skewMsMax = 1_000

export async function checkNodes(api: Api): Promise<Finding[]> {
  try {
    await api.get('/live')
  } catch (error) {
    const fix = 'start a node (npm start, rouse serve), or set its address with --url or ROUSE_URL'
    return [problem('node', (error as Error).message, fix)]
  }
  return [await checkReady(api), ...checkTransport(api.url), ...(await checkCluster(api))]
}

/** Reads the configuration of each node that answers. */
export async function readNodes(api: Api): Promise<ConfiguredNode[]> {
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
    return fine('ready', `${api.url} accepts messages`)
  } catch (error) {
    const fix = 'check PostgreSQL and the log of the node'
    return problem('ready', `${api.url} does not accept messages: ${(error as Error).message}`, fix)
  }
}

async function checkCluster(api: Api): Promise<Finding[]> {
  let body: Json
  try {
    body = (await api.get('/stats?scope=cluster')).body
  } catch (error) {
    const what = `the state of the cluster cannot be read: ${(error as Error).message}`
    return [
      problem(
        'access',
        what,
        'use an API key with the grant observe, such as one of preset operator',
      ),
    ]
  }
  return [
    ...body.nodes.map(checkMode),
    ...body.nodes.flatMap(checkAccess),
    ...checkGossip(body.nodes),
    ...body.unreachable.map(checkAbsent),
    ...versionsOf(body.nodes),
    ...checkDefaults(body.nodes),
    ...body.nodes.flatMap(checkSkew),
    ...checkRetention(body.nodes),
    ...checkCopies(body.nodes),
  ]
}

function checkMode({ node, mode }: Json): Finding {
  if (mode.mode === 'healthy') return fine('mode', `${node} is healthy`)
  return warning(
    'mode',
    `${node} polls faster than usual: ${mode.why.join(', ')}`,
    'peer_silent: gossip is blocked; listener_lost: LISTEN is broken; other reasons go away by themselves',
  )
}

/** A line for each fault, and one for all pairs of nodes that reach each other: there are many. */
function checkGossip(nodes: readonly Json[]): Finding[] {
  const links = nodes.flatMap(({ node, peers }) =>
    peers
      .filter(({ state }: Json) => state !== 'left' && state !== 'dead')
      .map((peer: Json) => ({ node, ...peer })),
  )
  const [good, bad] = [links.filter(isMutual), links.filter((link) => !isMutual(link))]
  const slowestMs = Math.max(...good.map(({ rttMs }) => Number(rttMs ?? 0)))
  const pairs = new Set(
    good.map(({ node, id }) => JSON.stringify(node < id ? [node, id] : [id, node])),
  ).size
  const names = [...new Set(good.flatMap(({ node, id }) => [node, id]))].sort((a, b) =>
    a < b ? -1 : 1,
  )
  const who = pairs === 1 ? names.join(' and ') : `${pairs} pairs of nodes`
  return [
    ...(good.length === 0
      ? []
      : [fine('gossip', `${who} reach each other by gossip (at most ${slowestMs.toFixed(1)} ms)`)]),
    ...bad.map(({ node, id, state }) =>
      problem(
        'gossip',
        state === 'alive'
          ? `${id} gets no gossip from ${node}`
          : `${node} gets no gossip from ${id}`,
        'allow UDP between the nodes, and check that each has the same ROUSE_GOSSIP_SECRET',
      ),
    ),
  ]
}

function isMutual({ state, hearsUs }: Json): boolean {
  return state === 'alive' && hearsUs === true
}

/** Only a warning: a dead node may have been removed on purpose, which looks the same as a crash. */
function checkAbsent({ id, state, error }: Json): Finding {
  if (state === 'dead') {
    const fix = 'restart it; a node that was removed permanently is dropped after an hour'
    return warning('dead', absence({ id, state, error }), fix)
  }
  return problem(
    'http',
    `${id} is unavailable over HTTP: ${error}`,
    'check that it is running and that its ROUSE_ADVERTISE_URL is right',
  )
}

function versionsOf(nodes: readonly Json[]): Finding[] {
  const versions = [...new Set(nodes.map(({ version }) => version))]
  if (versions.length <= 1) return []
  return [warning('version', `the nodes run ${versions.join(' and ')}`, 'finish the upgrade')]
}

/** A node of an earlier release does not report its defaults. */
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
        `the nodes have different defaults of ${name} for new queues (${said.join(', ')})`,
        'give every node the same ROUSE_DEFAULT_*; until then the node that started last decides',
      ),
    ]
  })
}

/** Skips nodes that have not compared their clock with the database yet. */
function checkSkew({ node, time }: Json): Finding[] {
  const skewMs = Number(time?.skewMs ?? Number.NaN)
  if (Number.isNaN(skewMs)) return []
  if (Math.abs(skewMs) <= skewMsMax)
    return [fine('clock', `${node} and the database agree on the time`)]
  return [
    warning(
      'clock',
      `the clock of ${node} differs by ${Math.round(skewMs)} ms from the database`,
      'run a time service (chrony, ntpd)',
    ),
  ]
}

/** Every node reports the same groups, as of its last retention run, so each group is listed once. */
function checkRetention(nodes: readonly Json[]): Finding[] {
  const groups = new Map<string, Json>()
  for (const group of nodes.flatMap(({ retention }) => retention?.held_by ?? [])) {
    groups.set(JSON.stringify([group.queue, group.consumerGroup]), group)
  }
  return [...groups.values()].map(checkHolding)
}

function checkHolding(group: Json): Finding {
  const { queue, consumerGroup, lastSeenAt, messages, isPartial, oldestAt, until } = group
  const end = until === null ? 'permanently' : `until ${until}`
  return warning(
    'retention',
    `consumer group "${consumerGroup}" of queue "${queue}" has made no request since ${lastSeenAt} and keeps ` +
      `${isPartial ? 'at least ' : ''}${messages} messages that retention would remove, the oldest of ${oldestAt}, ${end}`,
    'start its consumers, or delete the group if it is not needed; ROUSE_IDLE_GROUP_SECONDS limits how long it keeps messages',
  )
}

/** All nodes share the database, so one finding is enough. */
function checkCopies(nodes: readonly Json[]): Finding[] {
  const copy = nodes.find((node) => node.copy_of != null)?.copy_of
  return copy === undefined ? [] : [copyFound(copy)]
}
