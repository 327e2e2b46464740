// A node under systemd reports when it is ready and when it drains.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { eventually, programMissing } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { startBroker } from '../support/broker.ts'

const timeout = 60_000
const patience = { timeoutMs: 20_000 }
// Node.js cannot open such a socket.
const skip = programMissing('systemd-notify', 'systemd') || programMissing('python3')

test('READY=1 when the node serves, STOPPING=1 when it drains', { timeout, skip }, async (t) => {
  const receiver = await startReceiver(t)
  const node = await startBroker(t, { env: { NOTIFY_SOCKET: receiver.path } })
  await eventually(() => receiver.received.length > 0, patience)
  t.match(receiver.received, [/^READY=1 STATUS=serving/])
  t.match(await node.stop(), { code: 0 })
  await eventually(() => receiver.received.length > 1, patience)
  t.match(receiver.received[1], /^STOPPING=1 STATUS=draining/)
  t.notOk(node.log.some(({ msg }) => /systemd-notify failed/.test(String(msg))))
})

test('a node that cannot report logs it and serves', { timeout }, async (t) => {
  const node = await startBroker(t, { env: { NOTIFY_SOCKET: '/nonexistent/socket' } })
  await eventually(
    () => node.log.some(({ msg }) => String(msg).startsWith('systemd-notify failed')),
    patience,
  )
  t.equal((await fetch(`${node.url}/ready`)).status, 200)
})

/** A datagram socket like that of systemd. Lines of a message are separated by a space here. */
async function startReceiver(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'rouse-notify-'))
  const path = join(folder, 'socket')
  const script = `import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print('bound', flush=True)
while True: print(s.recv(4096).decode().replace('\\n', ' '), flush=True)`
  const child = spawn('python3', ['-c', script, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => {
    child.kill()
    rmSync(folder, { recursive: true })
  })
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
  await eventually(() => lines.length > 0, patience)
  return {
    path,
    // systemd-notify waits until its own message was received (BARRIER).
    get received() {
      return lines.slice(1).filter((line) => !line.startsWith('BARRIER'))
    },
  }
}
