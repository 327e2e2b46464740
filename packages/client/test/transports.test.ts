import { createTransport as byFetch } from '../src/fetch-transport.ts'
import { createTransport as byNode } from '../src/node-transport.ts'
import { transportSuite } from './support/transport-suite.ts'

transportSuite('node:http', byNode)
transportSuite('fetch', byFetch)
