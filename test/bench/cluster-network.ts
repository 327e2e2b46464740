import { execFileSync } from 'node:child_process'

/** A new network namespace has a loopback that is down. */
export function raiseLoopback(): void {
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
}

export interface UdpLoss {
  /** Absent: all. */
  readonly probability?: number
  /** Absent: whoever it is for. */
  readonly toPort?: number
}

export function dropUdp({ probability, toPort }: UdpLoss): void {
  const port = toPort === undefined ? [] : ['--dport', String(toPort)]
  const chance =
    probability === undefined
      ? []
      : ['-m', 'statistic', '--mode', 'random', '--probability', String(probability)]
  iptables('-A', 'INPUT', '-p', 'udp', ...port, ...chance, '-j', 'DROP')
}

export function healUdp(): void {
  iptables('-F', 'INPUT')
}

function iptables(...args: readonly string[]): void {
  execFileSync('iptables', args)
}
