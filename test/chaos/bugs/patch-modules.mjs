// Loaded into every process of a node by NODE_OPTIONS: patches the modules that CHAOS_PATCHES names.
import { register } from 'node:module'

register('./patch-loader.mjs', import.meta.url, {
  data: JSON.parse(process.env.CHAOS_PATCHES ?? '[]'),
})
