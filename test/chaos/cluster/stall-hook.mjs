// Loaded into every process of a node by NODE_OPTIONS: on SIGUSR2 the event loop stands still.
import { readFileSync } from 'node:fs'

process.on('SIGUSR2', () => {
  const ms = Number(readFileSync(process.env.CHAOS_STALL_FILE ?? '', 'utf8'))
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
})
