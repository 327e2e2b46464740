// A network namespace of one's own, where datagrams can be lost without harm to anybody else.
import { execFileSync, type SpawnSyncReturns, spawnSync } from 'node:child_process'

export interface UdpLoss {
  /** Absent: all. */
  readonly probability?: number
  /** Absent: whoever it is for. */
  readonly toPort?: number
}

/** For the `skip` of a test: false where a namespace can be made and datagrams be lost in it, else the reason. */
export function privateNetworkMissing(): string | false {
  const probe = `ip link set lo up && iptables ${dropArguments({ probability: 0.5 }).join(' ')}`
  const { status, stderr, error } = runInPrivateNetwork(['sh', '-c', probe], 'pipe')
  if (status === 0) return false
  const reason = error?.message ?? String(stderr).trim()
  return `no network namespace with iptables is to be had: ${reason} (Debian: apt-get install iptables iproute2, as root)`
}

export function runInPrivateNetwork(
  command: readonly string[],
  stdio: 'inherit' | 'pipe',
): SpawnSyncReturns<Buffer> {
  return spawnSync('unshare', ['-n', '--', ...command], { stdio })
}

/** A new network namespace has a loopback that is down. */
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
