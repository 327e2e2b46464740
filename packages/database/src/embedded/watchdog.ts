// Stops the server when the process that launched it dies, for whatever reason.
//
// A shell holds the read end of a pipe whose only writer is the launcher. When the launcher dies, the kernel
// closes the write end; the shell's read returns, and the shell stops the server. A line on the pipe means
// that the launcher has stopped the server itself, and the shell exits without doing anything.
import { type ChildProcess, spawn } from 'node:child_process'
import type { DataFolder } from './data-folder.ts'

export interface Watchdog {
  /** Ends the watchdog: the server has been stopped. */
  dismiss(): void
  unref(): void
}

// $1 the server's pid, $2 its data folder, $3 the signal, $4 a folder to remove or nothing. The pid is
// compared with postmaster.pid, so that a reused pid is not signalled.
const script = `
read -r word && exit 0
if [ "$(head -n 1 "$2/postmaster.pid" 2>/dev/null)" = "$1" ]; then kill -s "$3" "$1"; fi
[ -n "$4" ] || exit 0
tries=100
while [ "$tries" -gt 0 ] && kill -0 "$1" 2>/dev/null; do sleep 0.05; tries=$((tries - 1)); done
rm -rf "$4"
`

export function startWatchdog(serverPid: number | undefined, folder: DataFolder): Watchdog {
  // Windows has no shell. There, an orphaned server runs until the next start in its data folder stops it.
  if (process.platform === 'win32' || serverPid === undefined) return { dismiss() {}, unref() {} }
  const signal = folder.temporary ? 'QUIT' : 'INT'
  const remove = folder.temporary ? folder.path : ''
  const shell: ChildProcess = spawn(
    '/bin/sh',
    ['-c', script, 'rouse-watchdog', String(serverPid), folder.path, signal, remove],
    // A separate session, or the Ctrl-C that ends the launcher would end the watchdog first.
    { cwd: '/', detached: true, stdio: ['pipe', 'ignore', 'ignore'] },
  )
  shell.on('error', () => {})
  shell.stdin?.on('error', () => {})
  return {
    dismiss: () => void shell.stdin?.end('stopped\n'),
    unref() {
      shell.unref()
      unrefStream(shell.stdin)
    },
  }
}

/** Pipes of child processes have `unref`, because they are sockets; their type does not say so. */
export function unrefStream(stream: unknown): void {
  if (typeof stream === 'object' && stream !== null && 'unref' in stream) {
    ;(stream as { unref(): void }).unref()
  }
}
