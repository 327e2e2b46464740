import { execFileSync } from 'node:child_process'
import { type Finding, fine, warning } from './finding.ts'

/** Each waiting pop is a connection, and each connection a file. */
const filesWanted = 16_384

export function checkMachine(): Finding[] {
  return [checkFiles(), checkNode()]
}

function checkFiles(): Finding {
  let text = ''
  try {
    text = execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).trim()
  } catch {
    return warning('files', 'the limit of open files is not known', 'ulimit -n shows it')
  }
  const limit = text === 'unlimited' ? Number.POSITIVE_INFINITY : Number(text)
  if (limit >= filesWanted) return fine('files', `up to ${text} open files`)
  return warning(
    'files',
    `only ${text} open files: with as many waiting pops, connections are refused`,
    `ulimit -n ${filesWanted}, or LimitNOFILE=${filesWanted} in the unit of a node`,
  )
}

function checkNode(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 19))
    return fine('node', `Node ${process.versions.node}`)
  return warning('node', `Node ${process.versions.node} is too old`, 'install Node 20.19 or newer')
}
