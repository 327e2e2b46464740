import type pg from 'pg'
import { parseConnectionTarget } from './connection-target.ts'
import { HostClient } from './host-client.ts'
import { HostFinder } from './host-finder.ts'

export interface ConnectorOptions {
  /** The address of one server, or of several of which one accepts writes. */
  readonly url: string
  readonly applicationName: string
  readonly connectTimeoutMs: number
  readonly queryTimeoutMs: number
  /** From 0 to 1, for jitter. */
  readonly random: () => number
}

/** For a single long-lived connection, such as the one that LISTENs. */
export interface Connector {
  /** A client for the current server, not yet connected, so that the caller can add listeners first. */
  next(): Promise<pg.Client>
}

export function createConnector(options: ConnectorOptions): Connector {
  const target = parseConnectionTarget(options.url)
  const clientConfig: pg.ClientConfig = {
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs,
    query_timeout: options.queryTimeoutMs,
    keepAlive: true,
  }
  const finder = new HostFinder({
    target,
    clientConfig,
    searchMsMax: options.connectTimeoutMs,
    random: options.random,
  })
  return {
    async next() {
      // A caller that needs another client has lost its connection, perhaps because the server is silent.
      finder.suspect(finder.best)
      const server = await finder.find()
      return new HostClient(clientConfig, { server, readWrite: target.readWrite })
    },
  }
}
