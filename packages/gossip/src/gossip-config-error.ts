export type GossipConfigErrorCode =
  | 'gossip_secret_missing'
  | 'gossip_secret_invalid'
  | 'gossip_address_invalid'
  | 'gossip_name_invalid'

/** The configuration cannot work. The message says how to fix it. */
export class GossipConfigError extends Error {
  override readonly name = 'GossipConfigError'
  readonly code: GossipConfigErrorCode

  constructor(code: GossipConfigErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
