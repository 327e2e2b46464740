import { createTransport as byFetch } from '../../src/http/fetch-transport.ts'
import { createTransport as byNode } from '../../src/http/node-transport.ts'
import { transportSuite } from '../support/transport-suite.ts'

transportSuite('node:http', byNode)
transportSuite('fetch', byFetch)
