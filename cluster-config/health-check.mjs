// The container's health check: whether the node on this machine answers at all.
const port = process.env.ROUSE_PORT || '4600'
const answer = await fetch(`http://127.0.0.1:${port}/live`, { signal: AbortSignal.timeout(2_500) })
process.exit(answer.ok ? 0 : 1)
