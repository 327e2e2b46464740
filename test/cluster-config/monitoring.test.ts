// The files for Prometheus and Grafana, and the health check of the image. Which metrics a node really has is checked in
// apps/broker/test/observe/metrics.test.ts.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { programMissing, programPath } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { parse } from 'yaml'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const textOf = (name: string) => readFileSync(join(root, name), 'utf8')
const skip = programMissing('promtool', 'prometheus')
const timeout = 60_000

test('promtool accepts prometheus.yml and alert-rules.yml, and refuses wrong ones', {
  skip,
  timeout,
}, async (t) => {
  const folder = folderOf(t)
  const rules = join(folder, 'alert-rules.yml')
  const token = join(folder, 'token')
  writeFileSync(rules, textOf('cluster-config/alert-rules.yml'))
  writeFileSync(token, 'rouse_x')
  const placed = textOf('cluster-config/prometheus.yml')
    .replace('/etc/prometheus/alert-rules.yml', rules)
    .replace('/run/secrets/rouse-metrics-key', token)
  const config = join(folder, 'prometheus.yml')
  const check = async (text: string) => {
    writeFileSync(config, text)
    return await promtool('check', 'config', config)
  }
  const found = await check(placed)
  t.equal(found.code, 0, found.output)
  t.match(found.output, /SUCCESS: \d\d rules found/)
  t.equal((await check(placed.replace('scrape_interval', 'scrape_intervall'))).code, 1)
  writeFileSync(rules, textOf('cluster-config/alert-rules.yml').replace('rate(', 'rat('))
  t.equal((await check(placed)).code, 1)
})

test('promtool parses the query of every panel of the Grafana dashboard', {
  skip,
  timeout,
}, async (t) => {
  interface Panel {
    readonly title: string
    readonly targets?: readonly { readonly expr: string }[]
    readonly panels?: readonly Panel[]
  }
  const panelsOf = (panels: readonly Panel[]): readonly Panel[] =>
    panels.flatMap((panel) => [panel, ...panelsOf(panel.panels ?? [])])
  const { panels } = JSON.parse(textOf('cluster-config/grafana-dashboard.json'))
  const queries = panelsOf(panels).flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
  t.ok(queries.length > 10, `${queries.length} queries`)
  // As rules, all queries need one call. Variables of Grafana stand for a duration or a text.
  const rules = queries.map((expr, i) => ({
    record: `panel:${i}`,
    expr: expr.replaceAll(/\$__(rate_)?interval/g, '5m').replaceAll(/\$\{?\w+\}?/g, 'x'),
  }))
  const file = join(folderOf(t), 'panels.yml')
  const check = async (list: typeof rules) => {
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules: list }] }))
    return await promtool('check', 'rules', file)
  }
  const found = await check(rules)
  t.equal(found.code, 0, found.output)
  t.equal((await check([{ record: 'panel:0', expr: 'sum by (queue' }])).code, 1)
})

test('Prometheus and the balancer know the same nodes, and compose mounts what they read', async (t) => {
  const config = parse(textOf('cluster-config/prometheus.yml'))
  const [{ authorization, static_configs: targets }] = config.scrape_configs
  t.same(targets[0].targets, textOf('cluster-config/haproxy.cfg').match(/\bnode\d:\d+/g))
  const compose = parse(textOf('docker-compose.cluster.yml'), { merge: true })
  const { prometheus } = compose.services
  t.same(prometheus.profiles, ['monitoring'])
  t.same(prometheus.secrets, [authorization.credentials_file.split('/').at(-1)])
  for (const mount of prometheus.volumes.filter((path: string) => path.startsWith('.'))) {
    const [here, there] = mount.split(':')
    t.ok(textOf(here))
    t.ok([...config.rule_files, '/etc/prometheus/prometheus.yml'].includes(there), there)
  }
})

test('every service of the compose file is confined, and publishes ports on loopback only', async (t) => {
  const { services } = parse(textOf('docker-compose.cluster.yml'), { merge: true })
  for (const [name, service] of Object.entries<Record<string, string[]>>(services)) {
    t.same(service.security_opt, ['no-new-privileges:true'], name)
    for (const port of service.ports ?? []) t.match(port, /^127\.0\.0\.1:/, name)
    if (name === 'postgres') continue
    t.match(service, { read_only: true, cap_drop: ['ALL'] }, name)
  }
})

test('the health check asks the port and the protocol of the node', { timeout }, async (t) => {
  let status = 200
  const respond = (request: IncomingMessage, response: ServerResponse) => {
    t.equal(request.url, '/live')
    response.writeHead(status).end()
  }
  const plain = await listening(t, createServer(respond))
  const certificate = certificateIn(folderOf(t))
  const tls = await listening(t, createTlsServer(await certificate, respond))
  const file = join(folderOf(t), 'node.json')
  writeFileSync(file, JSON.stringify({ port: tls, tlsCert: '/etc/rouse/tls.pem' }))

  t.equal(await health({ ROUSE_PORT: String(plain) }), 0)
  t.equal(await health({ ROUSE_PORT: String(tls), ROUSE_TLS_CERT: 'tls.pem' }), 0)
  t.equal(await health({ ROUSE_CONFIG: file }), 0)
  t.equal(await health({ ROUSE_PORT: String(tls) }), 1, 'HTTP to a port with HTTPS')
  status = 503
  t.equal(await health({ ROUSE_PORT: String(plain) }), 1)
  t.equal(await health({ ROUSE_PORT: '1' }), 1, 'no server listens')
})

async function promtool(...args: string[]): Promise<{ code: number; output: string }> {
  try {
    const { stdout, stderr } = await run(programPath('promtool') ?? '', args)
    return { code: 0, output: stdout + stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, output: stdout + stderr }
  }
}

async function health(env: Record<string, string>): Promise<number> {
  const script = join(root, 'cluster-config/health-check.mjs')
  return await run(process.execPath, [script], { env }).then(
    () => 0,
    (error: { code: number }) => error.code,
  )
}

async function listening(t: Test, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

async function certificateIn(folder: string): Promise<{ cert: Buffer; key: Buffer }> {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const name = ['-subj', '/CN=node1', '-days', '2']
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  await run('openssl', ['req', ...kind, ...name, '-keyout', key, '-out', cert])
  return { cert: readFileSync(cert), key: readFileSync(key) }
}

function folderOf(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'rouse-monitoring-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}
