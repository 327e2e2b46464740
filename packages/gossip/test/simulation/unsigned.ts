import type { GossipCoreOptions } from '../../src/index.ts'

/** Signs nothing: in a simulation nobody forges, and signatures would take most of the time. */
export const unsigned: GossipCoreOptions['signer'] = {
  keyId: 0,
  sign: (bytes, length) => {
    bytes.fill(0, length)
  },
  verify: () => 'genuine',
}
