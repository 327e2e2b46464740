import { test } from 'tap'
import {
  choosePostgresSource,
  containerSource,
  embeddedSource,
  givenSource,
  postgresSourceSuite,
  sharedPostgresUrl,
} from '../src/index.ts'

test('an embedded PostgreSQL passes the suite', async (t) => {
  await postgresSourceSuite(t, embeddedSource)
})

test('a given PostgreSQL passes the suite', async (t) => {
  const url = await sharedPostgresUrl()
  await postgresSourceSuite(t, () => givenSource(url))
})

test('a PostgreSQL in a container passes the suite', {
  skip: process.env.ROUSE_TEST_POSTGRES === 'container' ? false : 'npm run test:containers',
}, async (t) => {
  await postgresSourceSuite(t, containerSource)
})

test('without a container engine the error is one line', async (t) => {
  const source = containerSource(async () => {
    throw new Error('no engine here\nand a long story about it')
  })
  await t.rejects(source.start(), {
    message: 'no container engine could start postgres:18: no engine here',
  })
  await source.stop()
})

test('a run-wide URL takes precedence over a container, and that over DATABASE_URL', async (t) => {
  const both = { ROUSE_TEST_DATABASE_URL: 'postgres://a', ROUSE_TEST_POSTGRES: 'container' }
  t.equal(choosePostgresSource(both).kind, 'given')
  const container = { ROUSE_TEST_POSTGRES: 'container', DATABASE_URL: 'postgres://b' }
  t.equal(choosePostgresSource(container).kind, 'container')
  t.equal(choosePostgresSource({ DATABASE_URL: 'postgres://b' }).kind, 'given')
  t.equal(choosePostgresSource({}).kind, 'embedded')
})
