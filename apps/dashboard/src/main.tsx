import { render } from 'preact'
import './style.css'
import './shell/theme.ts'
import { App } from './shell/app.tsx'

const root = document.getElementById('root')
if (root !== null) render(<App />, root)
