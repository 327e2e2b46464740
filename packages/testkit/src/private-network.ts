// A separate network namespace, where dropping datagrams affects no other process.
import { execFileSync, type SpawnSyncReturns, spawnSync } from 'node:child_process'

export interface UdpLoss {
  /** The share of datagrams to drop. Default: all. */
  readonly probability?: number
  /** Default: any port. */
  readonly toPort?: number
}

/** For the `skip` of a test: false if a namespace with packet loss can be created, else the reason. */
export function privateNetworkMissing(): string | false {
  const probe = `ip link set lo up && iptables ${dropArguments({ probability: 0.5 }).join(' ')}`
  const { status, stderr, error } = runInPrivateNetwork(['sh', '-c', probe], 'pipe')
  if (status === 0) return false
  const reason = error?.message ?? String(stderr).trim()
  return `cannot create a network namespace with iptables: ${reason} (Debian: apt-get install iptables iproute2, as root)`
}

export function runInPrivateNetwork(
  command: readonly string[],
  stdio: 'inherit' | 'pipe',
): SpawnSyncReturns<Buffer> {
  return spawnSync('unshare', ['-n', '--', ...command], { stdio })
}

/** Needed because the loopback interface of a new network namespace is down. */
export function raiseLoopback(): void {
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
}

export function dropUdp(loss: UdpLoss): void {
  execFileSync('iptables', dropArguments(loss))
}

export function healUdp(): void {
  execFileSync('iptables', ['-F', 'INPUT'])
}

function dropArguments({ probability, toPort }: UdpLoss): string[] {
  const port = toPort === undefined ? [] : ['--dport', String(toPort)]
  const chance =
    probability === undefined
      ? []
      : ['-m', 'statistic', '--mode', 'random', '--probability', String(probability)]
  return ['-A', 'INPUT', '-p', 'udp', ...port, ...chance, '-j', 'DROP']
}
