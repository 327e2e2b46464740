import { type AddressInfo, createServer } from 'node:net'

/** A free port on 127.0.0.1. Another process may take it before the caller does. */
export function freePort(): Promise<number> {
  const probe = createServer()
  return new Promise((resolve, reject) => {
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}
