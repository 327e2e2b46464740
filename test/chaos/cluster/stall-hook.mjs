// Loaded into every process of a node by NODE_OPTIONS: SIGUSR2 blocks the event loop.
import { readFileSync } from 'node:fs'

process.on('SIGUSR2', () => {
  const ms = Number(readFileSync(process.env.CHAOS_STALL_FILE ?? '', 'utf8'))
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
})
