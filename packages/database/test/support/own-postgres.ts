// Starts an embedded PostgreSQL, reports it to the parent process, and runs until it is killed.
import { startEmbeddedPostgres } from '../../src/index.ts'

const [dataDir] = process.argv.slice(2)
const postgres = await startEmbeddedPostgres(dataDir === undefined ? {} : { dataDir })
process.send?.({ pid: postgres.pid, url: postgres.url, dataDir: postgres.dataDir })
