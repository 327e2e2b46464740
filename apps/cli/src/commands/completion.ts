// Completion scripts. They ask the program itself at every Tab, so that they know the queues of the cluster. Words
// are never expanded by the shell: the name of a queue may contain `$(…)`.
import type { Command } from 'commander'
import { candidates } from '../completion/candidates.ts'
import { sessionOf, verb } from '../verb.ts'

const shells = ['bash', 'zsh', 'fish']

export function completionVerb(program: Command): void {
  verb(
    program,
    'completion',
    'print a completion script for your shell',
    `source <(rouse completion bash)
rouse completion zsh > "\${fpath[1]}/_rouse"
rouse completion fish > ~/.config/fish/completions/rouse.fish`,
  )
    .argument('<shell>', shells.join(', '))
    .action((shell: string, _options: object, command: Command) => {
      const script = scripts[shell]
      if (script === undefined) {
        command.error(`error: the shell must be one of ${shells.join(', ')}`)
      } else process.stdout.write(script)
    })
}

/** What the scripts call: prints the words that may follow, one per line. The last word is incomplete. */
export function completeVerb(program: Command): void {
  program
    .command('__complete [words...]', { hidden: true })
    .action(async (words: readonly string[], _options: object, command: Command) => {
      const { api } = sessionOf(command)
      for (const word of await candidates(program, words, api)) process.stdout.write(`${word}\n`)
    })
}

const scripts: Readonly<Record<string, string>> = {
  bash: `_rouse() {
  local word
  COMPREPLY=()
  while IFS= read -r word; do
    COMPREPLY+=("$(printf '%q' "$word")")
  done < <(rouse __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _rouse rouse
`,
  zsh: `#compdef rouse
_rouse() {
  local -a found
  found=("\${(@f)$(rouse __complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  (( \${#found} )) && [[ -n "\${found[1]}" ]] && compadd -- "\${found[@]}" || _files
}
if [[ "\${funcstack[1]}" == _rouse ]]; then _rouse "$@"; else compdef _rouse rouse; fi
`,
  fish: `function __rouse_complete
  set -l words (commandline -opc)
  rouse __complete -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c rouse -f -a '(__rouse_complete)'
`,
}
