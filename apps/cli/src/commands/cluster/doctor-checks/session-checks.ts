// Finds settings of the role, the database or the server that nodes cannot work with. Nodes override most of
// them on their own connections, so overridden settings are only warnings. Behind a pooler, overriding costs
// two round trips per statement.
import { type Pool, type RoleSetting, readRoleSettings, withoutTimeouts } from '@rouse/storage'
import { type Finding, fine, problem, warning } from './finding.ts'

const readOnly = 'default_transaction_read_only'

export async function checkSession(url: string): Promise<Finding[]> {
  const { createPool, sessionSettings, shadowsBuiltIns } = await import('@rouse/database')
  let pool: Pool | undefined
  try {
    pool = createPool({ url, max: 1, applicationName: 'rouse doctor', keepSettings: true })
    const names = [...sessionSettings.map(({ name }) => name), readOnly]
    const { found, isShadowed } = await withoutTimeouts(pool, async (client) => ({
      found: await readRoleSettings(client, names),
      isShadowed: await shadowsBuiltIns(client),
    }))
    const findings = found.flatMap((setting) => {
      if (setting.name === readOnly) return setting.value === 'on' ? [isReadOnly(setting)] : []
      const known = sessionSettings.find(({ name }) => name === setting.name)
      const isHarmful =
        setting.name === 'search_path' ? isShadowed : known?.isHarmful(setting.value)
      return isHarmful === true ? [isHarmfulSetting(setting, known?.harm ?? '')] : []
    })
    return findings.length > 0
      ? findings
      : [fine('settings', 'the role and the database have no settings that nodes must override')]
  } finally {
    await pool?.end()
  }
}

function isHarmfulSetting(setting: RoleSetting, harm: string): Finding {
  const { name, value } = setting
  const what = `${name} is ${value}: ${harm}; nodes override it, but user sessions and a pooler do not`
  return warning('settings', what, resetOf(setting))
}

function isReadOnly(setting: RoleSetting): Finding {
  return problem('settings', `${readOnly} is on: nothing can be written`, resetOf(setting))
}

/** The command depends on the source of the value. */
function resetOf({ name, source, role, database }: RoleSetting): string {
  switch (source) {
    case 'database':
      return `as its owner: alter database ${database} reset ${name}`
    case 'user':
      return `alter role ${role} reset ${name}`
    case 'database user':
      return `alter role ${role} in database ${database} reset ${name}`
    case 'global':
      return `alter role all reset ${name}`
    case 'client':
      return `remove ${name} from the database's URL, PGOPTIONS and the pooler`
    case 'session':
      return `alter system reset ${name}, or remove it from postgresql.conf, the database's URL, PGOPTIONS and the pooler`
    default:
      return `alter system reset ${name}, or remove it from postgresql.conf`
  }
}
