import { join } from 'node:path'

/** The text shown when a development cluster is up: addresses and a first message to try. */
export function readyBanner({
  url,
  nodes,
  postgresUrl,
  dataDir,
}: {
  readonly url: string
  readonly nodes: readonly { readonly id: string; readonly url: string }[]
  readonly postgresUrl: string
  readonly dataDir: string
}): string[] {
  return [
    `Rouse is ready: ${url}`,
    ...nodes.map((node) => `  ${node.id.padEnd(12)} ${node.url}`),
    `  PostgreSQL   ${postgresUrl}`,
    `  dashboard    ${url}/dashboard/`,
    `  stats        ${url}/stats?scope=cluster`,
    `  logs         ${join(dataDir, 'node-*.log')}`,
    '',
    'Push a message, then pop it (the pop waits for one):',
    `  curl ${url}/api/v1/push -H 'content-type: application/json' ` +
      `-d '{"items":[{"queue":"hello","payload":{"n":1}}]}'`,
    `  curl '${url}/api/v1/pop/queue/hello?wait=true&autoAck=true'`,
    '',
  ]
}
