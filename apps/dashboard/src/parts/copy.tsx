import { useState } from 'preact/hooks'

/** Copies text. Browsers offer the clipboard only to pages over HTTPS, so there is a second way. */
export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [done, setDone] = useState(false)
  const copy = () => {
    const finish = () => {
      setDone(true)
      setTimeout(() => setDone(false), 1_500)
    }
    if (navigator.clipboard === undefined) {
      copyByCommand(text)
      finish()
    } else {
      navigator.clipboard.writeText(text).then(finish, () => {
        copyByCommand(text)
        finish()
      })
    }
  }
  return (
    <button type="button" class="small quiet" onClick={copy}>
      {done ? 'Copied' : label}
    </button>
  )
}

function copyByCommand(text: string): void {
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'off-screen'
  document.body.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}
