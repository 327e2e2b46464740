// The steps of `npm run test:packages`, in this order. A step throws, or returns what it measured.
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../run.mjs'
import { exampleDependencies, examples, firstScreen, runExample } from './examples.mjs'
import { commonJs, esModule, runtimes, typed } from './programs.mjs'

/** A project of users: its `package.json`, and options of its compiler. */
const compilers = [
  { name: 'nodenext', type: 'module', options: { module: 'nodenext' } },
  { name: 'nodenext-commonjs', type: 'commonjs', options: { module: 'nodenext' } },
  { name: 'node16', type: 'module', options: { module: 'node16' } },
  { name: 'node16-commonjs', type: 'commonjs', options: { module: 'node16' } },
  { name: 'bundler', type: 'module', options: { module: 'esnext', moduleResolution: 'bundler' } },
]

export const steps = [
  {
    title: 'publint finds no problem in either package',
    async run(consumer) {
      for (const { file } of consumer.tarballs)
        await consumer.runTool('publint', ['run', file, '--strict'])
    },
  },
  {
    title: 'the types of the client match its code in every mode of resolution',
    async run(consumer) {
      const { file } = consumer.tarballs.find(({ name }) => name === '@rouse/client')
      await consumer.runTool('attw', [file])
    },
  },
  {
    title: 'both packages are installed into an empty folder',
    isNeeded: true,
    async run(consumer) {
      const tarballs = consumer.tarballs.map(({ file }) => file)
      const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
      const versions = readFileSync(join(root, 'pnpm-workspace.yaml'), 'utf8')
      const [, types] = /"@types\/node": (\S+)/.exec(versions) ?? [
        undefined,
        devDependencies['@types/node'],
      ]
      const others = [`@types/node@${types}`, ...exampleDependencies()]
      // Strict: a dependency that does not allow this version of Node must not be installed.
      const args = ['install', '--no-audit', '--no-fund', '--engine-strict', ...tarballs, ...others]
      const output = await consumer.run('npm', args)
      for (const name of ['rouse', '@rouse/client']) {
        const path = join(consumer.folder, 'node_modules', name)
        if (lstatSync(path).isSymbolicLink()) throw new Error(`${path} is a link`)
      }
      const scoped = readdirSync(join(consumer.folder, 'node_modules', '@rouse'))
      if (scoped.join() !== 'client') throw new Error(`installed: @rouse/${scoped.join(', ')}`)
      return output.trim().split('\n')[0]
    },
  },
  {
    title: 'npx rouse prints its version',
    async run(consumer) {
      const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
      const printed = (await consumer.run('npx', ['--no-install', 'rouse', '--version'])).trim()
      if (printed !== version) throw new Error(`printed ${printed}, not ${version}`)
      return printed
    },
  },
  ...compilers.map(({ name, type, options }) => ({
    title: `a typed program compiles with ${name}`,
    run: (consumer) => compile(consumer, name, type, options),
  })),
  {
    title: 'npx rouse dev starts a cluster',
    isNeeded: true,
    run: (consumer) => consumer.startCluster(),
  },
  {
    title: 'the command line pushes and pops',
    async run(consumer) {
      const rouse = (...args) =>
        consumer.run('npx', ['--no-install', 'rouse', '--url', consumer.url, ...args])
      await rouse('push', 'cli', '{"n":1}')
      const { messages } = JSON.parse(await rouse('pop', 'cli', '--wait', '5', '--ack'))
      if (messages[0].data.n !== 1) throw new Error(JSON.stringify(messages))
    },
  },
  {
    title: 'an ES module pushes and consumes',
    run: (consumer) => runProgram(consumer, 'hello.mjs', esModule),
  },
  {
    title: 'a CommonJS module pushes and consumes, and shares errors with ES modules',
    run: (consumer) => runProgram(consumer, 'hello.cjs', commonJs),
  },
  {
    title: 'the first messages of README.md work as written',
    run: firstScreen,
  },
  ...examples.map((example) => ({
    title: `the example ${example.name} runs and compiles`,
    run: (consumer) => runExample(consumer, example),
  })),
  ...runtimes.map(({ name, packages, binary, args }) => ({
    title: `${name} pushes and consumes`,
    async run(consumer) {
      // Without install scripts: the binaries are packages of their own, nothing is downloaded beside npm.
      const [file] = packages[`${process.platform}-${process.arch}`] ?? []
      if (file === undefined) return `skipped: no package for ${process.platform}-${process.arch}`
      const install = ['install', '--no-audit', '--no-fund', '--no-save', '--ignore-scripts', file]
      try {
        await consumer.run('npm', install)
      } catch (error) {
        return `skipped: npm does not provide ${file}: ${error.message.split('\n')[0]}`
      }
      const path = join(consumer.folder, 'node_modules', file.replace(/@[^@]+$/, ''), binary)
      consumer.write(
        'hello-runtime.mjs',
        esModule.replace('from-esm', `from-${name.toLowerCase()}`),
      )
      const env = { ROUSE_URL: consumer.url }
      const printed = await consumer.run(path, [...args, 'hello-runtime.mjs'], { env })
      if (printed.trim() !== 'ok') throw new Error(`printed ${JSON.stringify(printed)}`)
      return (await consumer.run(path, ['--version'])).split('\n')[0]
    },
  })),
]

async function compile(consumer, name, type, options) {
  consumer.write(join(name, 'package.json'), JSON.stringify({ private: true, type }))
  consumer.write(join(name, 'typed.ts'), typed)
  const compilerOptions = {
    target: 'es2022',
    strict: true,
    noEmit: true,
    types: ['node'],
    ...options,
  }
  consumer.write(
    join(name, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: ['typed.ts'] }),
  )
  await consumer.runTool('tsc', ['-p', name])
}

async function runProgram(consumer, file, text) {
  consumer.write(file, text)
  const printed = await consumer.run(process.execPath, [file], { env: { ROUSE_URL: consumer.url } })
  if (printed.trim() !== 'ok') throw new Error(`printed ${JSON.stringify(printed)}`)
}
