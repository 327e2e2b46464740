import { type AddressInfo, createServer } from 'node:net'

/** A port of 127.0.0.1 at which nobody listens. Somebody else may take it before you do. */
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
