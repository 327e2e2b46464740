// The manifests: valid by the schemas of Kubernetes, with known settings, and consistent with each other.
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { loadConfig, newApiKey } from '@rouse/broker'
import { Deployment } from 'kubernetes-models/apps/v1/Deployment'
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget'
import { Secret } from 'kubernetes-models/v1/Secret'
import { Service } from 'kubernetes-models/v1/Service'
import { test } from 'tap'
import { parseAllDocuments } from 'yaml'

const folder = new URL('../../cluster-config/kubernetes/', import.meta.url)
const models = { Deployment, NetworkPolicy, PodDisruptionBudget, Secret, Service }
// biome-ignore lint/suspicious/noExplicitAny: manifests of every kind
type Manifest = any

const manifests: Manifest[] = readdirSync(folder).flatMap((name) =>
  parseAllDocuments(readFileSync(new URL(name, folder), 'utf8')).map((document) => {
    if (document.errors.length > 0) throw document.errors[0]
    return document.toJS() as Manifest
  }),
)
const deployment = manifests.find(({ kind }) => kind === 'Deployment')
const [container] = deployment.spec.template.spec.containers
const settings: Record<string, string> = Object.fromEntries(
  container.env.map(({ name, value, valueFrom }: Manifest) => [
    name,
    value ?? (valueFrom.fieldRef.fieldPath === 'status.podIP' ? '10.0.0.7' : 'rouse-7d4-x'),
  ]),
)

test('every manifest is valid, and an invalid one is not', async (t) => {
  t.equal(manifests.length, 6)
  const validate = (manifest: Manifest) =>
    new models[manifest.kind as keyof typeof models](manifest).validate()
  for (const manifest of manifests) {
    t.doesNotThrow(() => validate(manifest), `${manifest.kind} ${manifest.metadata.name}`)
  }
  const wrong = structuredClone(deployment)
  wrong.spec.template.spec.containers[0].readinessProbe.periodSeconds = 'often'
  t.throws(() => validate(wrong), /periodSeconds/)
})

test('a node accepts the settings of the deployment', async (t) => {
  const files: Record<string, string> = {
    'database-url': 'postgres://rouse@db/rouse',
    'gossip-secret': 'x'.repeat(64),
    'admin-key': newApiKey(randomBytes).key,
  }
  const env = Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [
      name,
      value.replaceAll(/\$\((\w+)\)/g, (_, other: string) => String(settings[other])),
    ]),
  )
  const secret = manifests.find(({ kind }) => kind === 'Secret')
  t.same(Object.keys(secret.stringData).sort(), Object.keys(files).sort())
  const readFile = (path: string) => files[path.split('/').at(-1) ?? ''] ?? t.fail(path)
  const sources = { env, args: container.args.slice(1), isWorker: false }
  const { config } = loadConfig({ ...sources, readFile: (path) => String(readFile(path)) })
  t.match(config, {
    nodeId: 'rouse-7d4-x',
    advertiseUrl: 'http://10.0.0.7:4600',
    gossipAdvertise: '10.0.0.7:4601',
    gossipPeers: ['srv:_gossip._udp.rouse-gossip'],
    databaseUrl: files['database-url'],
  })
  t.equal(container.args[0], 'serve')
  t.throws(
    () =>
      loadConfig({
        ...sources,
        readFile: (path) => secret.stringData[path.split('/').at(-1) ?? ''],
      }),
    /ROUSE_INITIAL_ADMIN_KEY|ROUSE_GOSSIP_SECRET/,
    'a secret that was not replaced is refused',
  )
})

test('ports, labels and names agree', async (t) => {
  const { labels } = deployment.spec.template.metadata
  const ports = Object.fromEntries(
    container.ports.map(({ name, containerPort }: Manifest) => [name, containerPort]),
  )
  t.same(ports, { http: 4600, gossip: 4601 })
  for (const { kind, spec } of manifests) {
    if (kind === 'Service') {
      t.match(labels, spec.selector)
      for (const { port, targetPort } of spec.ports) t.equal(ports[targetPort], port)
    }
    if (kind === 'PodDisruptionBudget') t.match(labels, spec.selector.matchLabels)
    if (kind === 'NetworkPolicy') t.match(labels, spec.podSelector.matchLabels)
  }
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
    t.ok(ports[container[probe].httpGet.port], probe)
  }
  const gossip = manifests.find(({ metadata }) => metadata.name === 'rouse-gossip')
  t.match(gossip.spec, { clusterIP: 'None', publishNotReadyAddresses: true })
  t.match(
    settings.ROUSE_GOSSIP_PEERS,
    new RegExp(`_${gossip.spec.ports[0].name}\\._udp\\.${gossip.metadata.name}$`),
  )
})

test('pods run as an ordinary user on a read-only file system, and have time to drain', async (t) => {
  const { securityContext, terminationGracePeriodSeconds } = deployment.spec.template.spec
  t.match(securityContext, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
  t.match(container.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
  t.ok(terminationGracePeriodSeconds >= 5 + 10 + 5)
})
