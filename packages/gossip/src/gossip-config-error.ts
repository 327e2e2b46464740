export type GossipConfigErrorCode =
  | 'gossip_secret_missing'
  | 'gossip_secret_invalid'
  | 'gossip_address_invalid'
  | 'gossip_name_invalid'

/** What was configured cannot work. The message says how to put it right. */
export class GossipConfigError extends Error {
  override readonly name = 'GossipConfigError'
  readonly code: GossipConfigErrorCode

  constructor(code: GossipConfigErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
