// `npm test [-- --quick | files and folders]`: set-up, checks, then every suite against one shared PostgreSQL of
// the newest version, and in the same schedule the version-dependent suites on the oldest. The last line is
// `N passed, M failed`, over both.

import { run } from './run.mjs'
import { setup } from './setup.mjs'
import { oldestSuites, runOnPostgres } from './test/postgres-suites.mjs'
import { reportRuns, runTap } from './test/run-tap.mjs'
import {
  allTestFiles,
  checkLists,
  namedTestFiles,
  quickTestFiles,
  TestFilesError,
} from './test/test-files.mjs'

try {
  checkLists()
  const { files, isWhole } = chooseFiles(process.argv.slice(2))
  await setup()
  process.exitCode = await checkAndRun(files, isWhole)
} catch (error) {
  if (!(error instanceof TestFilesError)) throw error
  console.error(`npm test: ${error.message}`)
  process.exitCode = 1
}

function chooseFiles(args) {
  const unknown = args.find((arg) => arg.startsWith('-') && arg !== '--quick')
  if (unknown !== undefined) {
    throw new TestFilesError(`unknown flag ${unknown}; it takes --quick, or test files and folders`)
  }
  const names = args.filter((arg) => arg !== '--quick')
  const isQuick = args.length > names.length
  if (isQuick && names.length > 0) {
    throw new TestFilesError('--quick has its own list of files; give either --quick or files')
  }
  if (isQuick) {
    return { files: [...quickTestFiles(), ...namedTestFiles(oldestSuites())], isWhole: false }
  }
  if (names.length > 0) return { files: namedTestFiles(names), isWhole: false }
  return { files: allTestFiles(), isWhole: true }
}

async function checkAndRun(files, isWhole) {
  if ((await run('npm', ['run', '--silent', 'check'])) === 0) {
    return reportRuns(await runAll(files, isWhole))
  }
  console.log('the checks failed, so no tests were run\n0 passed, 1 failed')
  return 1
}

/** If the environment names a server or a version, all files run on that server or version only. */
async function runAll(files, isWhole) {
  if (process.env.ROUSE_TEST_DATABASE_URL) return [await runTap(files)]
  const { majorUnderTest, postgresMajors } = await import('../packages/testkit/dist/index.js')
  const lists = [{ major: majorUnderTest(), files }]
  if (isWhole && !process.env.ROUSE_TEST_POSTGRES_MAJOR) {
    lists.push({ major: postgresMajors[0], files: oldestSuites() })
  }
  const run = await runOnPostgres(lists)
  return run === undefined ? [] : [run]
}
