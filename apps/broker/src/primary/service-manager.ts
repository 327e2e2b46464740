// Reports to systemd (Type=notify) when the node is ready and when it drains. Node.js has no datagram sockets
// of files, so systemd's own program sends the messages.
import { spawn } from 'node:child_process'
import type { Logger } from '../log.ts'

export interface ServiceManager {
  readonly ready: () => void
  readonly stopping: () => void
}

const program = 'systemd-notify'

/** Without a socket (NOTIFY_SOCKET), nothing waits for reports. */
export function createServiceManager(socket: string | undefined, log: Logger): ServiceManager {
  function notify(...states: readonly string[]): void {
    if (socket === undefined) return
    const failed = (reason: string) =>
      log.warn(
        { reason, states },
        `${program} failed: systemd does not know the state of this node`,
      )
    // The process inherits the environment, and NOTIFY_SOCKET with it.
    const child = spawn(program, states, { stdio: 'ignore' })
    child.once('error', (error) => failed(error.message))
    child.once('exit', (code) => code !== 0 && failed(`exit code ${code}`))
    child.unref()
  }
  return {
    ready: () => notify('READY=1', 'STATUS=serving'),
    stopping: () => notify('STOPPING=1', 'STATUS=draining'),
  }
}
