import type { Command } from 'commander'
import { CliError } from '../cli-error.ts'
import { verb } from '../verb.ts'

const shells = ['bash', 'zsh', 'fish']

export function completionVerb(program: Command): void {
  verb(
    program,
    'completion',
    'print a completion script for your shell',
    `source <(rouse completion bash)
rouse completion fish > ~/.config/fish/completions/rouse.fish`,
  )
    .argument('<shell>', shells.join(', '))
    .action((shell: string) => {
      if (!shells.includes(shell))
        throw new CliError('usage', `the shell must be one of ${shells.join(', ')}`)
      process.stdout.write(shell === 'fish' ? fish(program) : bash(program, shell === 'zsh'))
    })
}

function bash(program: Command, isZsh: boolean): string {
  const cases = program.commands.map((command) => {
    return `    ${command.name()}) words="${[...wordsOf(command), ...wordsOf(program)].join(' ')}" ;;`
  })
  return `${isZsh ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_rouse() {
  local words
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
    *) words="${[...program.commands.map((command) => command.name()), ...wordsOf(program)].join(' ')}" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _rouse rouse
`
}

function fish(program: Command): string {
  const lines = program.commands.flatMap((command) => [
    `complete -c rouse -n __fish_use_subcommand -f -a ${command.name()} -d ${JSON.stringify(command.description())}`,
    ...command.options.map((option) => {
      const name = option.long?.replace('--', '') ?? ''
      return `complete -c rouse -n "__fish_seen_subcommand_from ${command.name()}" -l ${name} -d ${JSON.stringify(option.description)}`
    }),
  ])
  return `${lines.join('\n')}\n`
}

function wordsOf(command: Command): string[] {
  const flags = command.options.flatMap(({ long }) => (long ? [long] : []))
  const verbs = command.commands.map((one) => one.name())
  return [...(command.parent === null ? [] : verbs), ...flags, '--help']
}
