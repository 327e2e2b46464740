import type { GossipCoreOptions } from '../../src/index.ts'

/** Signs nothing: nothing is forged in a simulation, and signatures would take most of the time. */
export const unsigned: GossipCoreOptions['signer'] = {
  keyId: 0,
  sign: (bytes, length) => {
    bytes.fill(0, length)
  },
  verify: () => 'genuine',
}
