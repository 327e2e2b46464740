// The only file that reads the environment.
export interface GlobalOptions {
  readonly url: string
  readonly json?: boolean
}

export const defaultUrl = process.env.ROUSE_URL || 'http://127.0.0.1:4600'
export const databaseUrl = process.env.ROUSE_DATABASE_URL || undefined
export const listenUrl = process.env.ROUSE_LISTEN_URL || undefined
