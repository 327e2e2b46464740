export { createProgram } from './program.ts'
