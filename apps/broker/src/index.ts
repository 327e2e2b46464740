export type { Config, ConfigRequest, ConfigSources } from './config.ts'
export { describeConfig, loadConfig } from './config.ts'
export { ConfigError } from './config-error.ts'
