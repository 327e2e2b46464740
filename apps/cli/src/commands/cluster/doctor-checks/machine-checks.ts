import { execFileSync } from 'node:child_process'
import { type Finding, fine, warning } from './finding.ts'

/** Each waiting pop holds a connection, which is an open file. */
const filesWanted = 16_384

export function checkMachine(): Finding[] {
  return [checkFiles(), checkNode()]
}

function checkFiles(): Finding {
  let text = ''
  try {
    text = execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).trim()
  } catch {
    return warning('files', 'the limit on open files is unknown', 'ulimit -n shows it')
  }
  const limit = text === 'unlimited' ? Number.POSITIVE_INFINITY : Number(text)
  if (limit >= filesWanted) return fine('files', `the limit on open files is ${text}`)
  return warning(
    'files',
    `the limit on open files is only ${text}: with that many waiting pops, connections are refused`,
    `ulimit -n ${filesWanted}, or LimitNOFILE=${filesWanted} in the node's systemd unit`,
  )
}

function checkNode(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 19))
    return fine('node', `Node ${process.versions.node}`)
  return warning('node', `Node ${process.versions.node} is too old`, 'install Node 20.19 or newer')
}
