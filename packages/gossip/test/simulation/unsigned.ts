import type { GossipCoreOptions } from '../../src/index.ts'

/**
 * A signer that does not sign: a simulation has no forged datagrams, and signatures would take most of its
 * time.
 */
export const unsigned: GossipCoreOptions['signer'] = {
  keyId: 0,
  sign: (bytes, length) => {
    bytes.fill(0, length)
  },
  verify: () => 'genuine',
}
