/** Why a development cluster could not start. The message is printed to the user. */
export class DevError extends Error {
  readonly code: 'node_failed' | 'port_taken' | 'bad_argument' | 'bad_folder' | 'stuck'

  constructor(code: DevError['code'], message: string) {
    super(message)
    this.name = 'DevError'
    this.code = code
  }
}
