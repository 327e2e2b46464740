// The flags of `npm start`. They are checked before anything is installed or built, so this file has no
// imports.
const kinds = { '--nodes': 'N', '--port': 'P', '--data': 'DIR' }
const nodesMax = 16
/** The ports of nodes are ten apart. A node's gossip port is the one after its HTTP port. */
const portStep = 10
const portMax = 65_535

/** Throws a FlagError with a message for the user. */
export function readStartFlags(args) {
  const values = { '--nodes': '3', '--port': '4600', '--data': '.rouse', ...valuesOf(args) }
  const nodes = wholeNumber(values['--nodes'])
  if (!(nodes >= 1 && nodes <= nodesMax)) {
    throw new FlagError(`--nodes must be a whole number from 1 to ${nodesMax}`)
  }
  const port = wholeNumber(values['--port'])
  const portHighest = portMax - (nodes + 1) * portStep
  if (!(port >= 1 && port <= portHighest)) {
    throw new FlagError(`--port must be a whole number from 1 to ${portHighest}`)
  }
  if (values['--data'].trim() === '') throw new FlagError('--data must name a folder')
  return { nodes, port, data: values['--data'] }
}

export class FlagError extends Error {}

/** `--name value` or `--name=value`. */
function valuesOf(args) {
  const values = {}
  const rest = [...args]
  while (rest.length > 0) {
    const [, name, inline] = /^(--[^=]*)(?:=(.*))?$/s.exec(rest[0]) ?? []
    const word = rest.shift()
    if (!Object.hasOwn(kinds, name)) {
      const known = Object.entries(kinds).map(([flag, kind]) => `${flag} ${kind}`)
      throw new FlagError(`unknown flag ${word}; npm start takes ${known.join(', ')}`)
    }
    // A negative number is a value, which is refused later.
    const value = inline ?? (rest[0]?.startsWith('--') ? undefined : rest.shift())
    if (value === undefined) throw new FlagError(`${name} needs a value`)
    values[name] = value
  }
  return values
}

function wholeNumber(text) {
  return /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
}
