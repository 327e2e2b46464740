// What the parts of a round trip cost when nothing else is done with them: a bare Fastify, a bare prepared
// query, a bare IPC message. Each runs in a process of its own, at the rate of the bench.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { cpuSecondsOf, familyCpuSeconds } from '../support/family-cpu.ts'
import type { Figures } from './figures.ts'
import type { FloorRole } from './floor-process.ts'

export interface Floor {
  /** CPU microseconds of the process that serves one request. */
  readonly httpUs: number
  /** CPU microseconds for one insert of a row, with its commit. */
  readonly queryUs: number
  readonly postgresUs: number
  /** CPU microseconds of the process that receives one IPC message and sends one. */
  readonly ipcUs: number
}

interface Pace {
  readonly rate: number
  readonly seconds: number
}

const payload = 'x'.repeat(200)
const agent = new Agent({ keepAlive: true, maxSockets: 4 })

export async function measureFloor(
  server: { readonly url: string; readonly pid: number },
  pace: Pace,
  warmUp: Pace,
): Promise<Floor> {
  const http = await start('http', server.url)
  const httpUs = await paced(http.child, warmUp, pace, () => post(String(http.first)))
  http.child.kill()
  const ipc = await start('ipc', server.url)
  const ipcUs = await paced(ipc.child, warmUp, pace, () => ask(ipc.child))
  ipc.child.kill()
  const query = await start('query', server.url)
  await repeat(warmUp, () => ask(query.child))
  const postgresBefore = familyCpuSeconds(server.pid)
  const wholeUs = await paced(query.child, undefined, pace, () => ask(query.child))
  const postgresUs = perMessage(familyCpuSeconds(server.pid) - postgresBefore, pace)
  query.child.kill()
  return { httpUs, postgresUs, ipcUs, queryUs: Math.max(0, wholeUs - ipcUs) }
}

/** One message needs three requests and three queries, and as many IPC messages as were counted. */
export function describeFloor(floor: Floor, { cpu, ipcSends = 0 }: Figures): string {
  const nodes = 3 * floor.httpUs + 3 * floor.queryUs + ipcSends * floor.ipcUs
  const postgres = 3 * floor.postgresUs
  const actual = cpu.primaries + cpu.workers
  const us = (value: number): string => `${Math.round(value).toLocaleString('en')} µs`
  return [
    `  floor: request ${us(floor.httpUs)}, query ${us(floor.queryUs)} + ${us(floor.postgresUs)} in PostgreSQL, ` +
      `IPC message ${us(floor.ipcUs)}`,
    `  3 requests, 3 queries and ${ipcSends.toFixed(1)} IPC messages: nodes ${us(nodes)}, PostgreSQL ${us(postgres)}`,
    `  distance: nodes ${(actual / nodes).toFixed(2)} times the floor, PostgreSQL ${(cpu.postgres / postgres).toFixed(2)} times`,
  ].join('\n')
}

async function start(
  role: FloorRole,
  databaseUrl: string,
): Promise<{ readonly child: ChildProcess; readonly first: unknown }> {
  const path = fileURLToPath(new URL('./floor-process.ts', import.meta.url))
  const child = fork(path, [role, databaseUrl])
  const [first] = (await once(child, 'message')) as [unknown]
  return { child, first }
}

async function paced(
  child: ChildProcess,
  warmUp: Pace | undefined,
  pace: Pace,
  act: () => Promise<void>,
): Promise<number> {
  if (warmUp !== undefined) await repeat(warmUp, act)
  const before = cpuSecondsOf(child.pid as number)
  await repeat(pace, act)
  return perMessage(cpuSecondsOf(child.pid as number) - before, pace)
}

function perMessage(cpuSeconds: number, { rate, seconds }: Pace): number {
  return (cpuSeconds * 1e6) / (rate * seconds)
}

async function repeat({ rate, seconds }: Pace, act: () => Promise<void>): Promise<void> {
  const begun = performance.now()
  for (let i = 0; i < rate * seconds; i += 1) {
    const waitMs = begun + (i * 1_000) / rate - performance.now()
    if (waitMs > 0) await delay(waitMs)
    await act()
  }
}

function post(url: string): Promise<void> {
  const body = JSON.stringify({ items: [{ queue: 'floor', payload }] })
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length }
    const sent = request(url, { method: 'POST', agent, headers }, (answer) => {
      answer.resume().once('end', () => resolve())
    })
    sent.once('error', reject)
    sent.end(body)
  })
}

async function ask(child: ChildProcess): Promise<void> {
  child.send(payload)
  await once(child, 'message')
}
