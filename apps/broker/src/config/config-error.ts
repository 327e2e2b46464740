/** An invalid setting, named as in the environment. */
export class ConfigError extends Error {
  readonly setting: string

  constructor(setting: string, problem: string) {
    super(`${setting} ${problem}`)
    this.name = 'ConfigError'
    this.setting = setting
  }
}
