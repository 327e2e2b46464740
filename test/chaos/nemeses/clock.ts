// Wrong clocks and blocked event loops.
import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { signal } from '../cluster/processes.ts'
import { nemesis, pause, pick, untilReady } from './nemesis.ts'
import { backUp } from './nodes.ts'

const library = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1'
/** The clock is ahead or behind, by seconds or by an hour. */
const skews = ['+30s', '-30s', '+3600s', '-3600s']

/** The wall clock of a running node jumps; its timers are not affected. */
export const clockSkew = nemesis(
  'clock-skew',
  async ({ nodes, stallFile }, { random, seconds }) => {
    const node = pick(nodes, random)
    const file = join(dirname(stallFile), `${node.id}-clock.txt`)
    await writeFile(file, '+0s')
    try {
      node.hold()
      await node.terminate()
      node.setEnvironment({
        LD_PRELOAD: library,
        FAKETIME_TIMESTAMP_FILE: file,
        FAKETIME_NO_CACHE: '1',
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
      })
      await backUp([node])
      for (const skew of skews) {
        await writeFile(file, skew)
        await pause(seconds / skews.length)
      }
      node.hold()
      await node.terminate()
    } finally {
      node.setEnvironment({})
      await backUp([node])
      await rm(file, { force: true })
    }
    return { target: `${node.id} by ${skews.join(', ')}` }
  },
  {
    async lacks() {
      return existsSync(library) ? undefined : 'libfaketime'
    },
  },
)

/** The event loop of one worker is blocked, as by a long garbage collection. */
export const loopStall = nemesis(
  'loop-stall',
  async ({ nodes, stallFile }, { random, seconds }) => {
    const node = pick(nodes, random)
    const pid = pick(node.workerPids(), random)
    await writeFile(stallFile, String(seconds * 1_000))
    signal(pid, 'SIGUSR2')
    await pause(seconds)
    await untilReady([node])
    return { target: `worker ${pid} of ${node.id}` }
  },
)
