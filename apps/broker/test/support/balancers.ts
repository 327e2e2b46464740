// Debian's haproxy and nginx with the files of cluster-config, on free ports of this machine.
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually, freePort, programPath } from '@rouse/testkit'
import type { Test } from 'tap'

export const balancers = ['haproxy', 'nginx'] as const
export type BalancerName = (typeof balancers)[number]

const patience = { timeoutMs: 20_000 }

/** Starts the balancer before nodes on these ports, and returns its URL. */
export async function startShippedBalancer(
  t: Test,
  name: BalancerName,
  nodePorts: readonly number[],
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), `rouse-${name}-`))
  chmodSync(folder, 0o755)
  const port = await freePort()
  const [file, args] = name === 'haproxy' ? haproxy(port) : nginx(port, folder)
  const placed = nodePorts.reduce(
    (text, nodePort, i) => text.replaceAll(`node${i + 1}:4600`, `127.0.0.1:${nodePort}`),
    file,
  )
  const path = join(folder, `${name}.conf`)
  writeFileSync(path, placed)
  const child = spawn(programPath(name) ?? name, [...args, path], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  t.teardown(async () => {
    await stop(child)
    rmSync(folder, { recursive: true })
  })
  const url = `http://127.0.0.1:${port}`
  await eventually(async () => (await fetch(`${url}/ready`)).ok, patience)
  return url
}

function haproxy(port: number): [string, string[]] {
  return [read('haproxy.cfg').replace('bind :4600', `bind 127.0.0.1:${port}`), ['-db', '-f']]
}

/** Only the port and the folders for temporary files differ from the shipped file. */
function nginx(port: number, folder: string): [string, string[]] {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join('\n')
  const text = read('nginx.conf')
    .replace('listen 4600;', `listen 127.0.0.1:${port};`)
    .replace('http {', `http {\n${paths}`)
  return [`pid ${folder}/pid;\n${text}`, ['-g', 'daemon off;', '-c']]
}

function read(name: string): string {
  return readFileSync(new URL(`../../../../cluster-config/${name}`, import.meta.url), 'utf8')
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await exited
}
