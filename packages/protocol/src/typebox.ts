// typebox is 700 small modules. The build puts those that are needed here into one file: a process of a node
// then starts with 0.17 s less CPU.
export { type Static, Type } from 'typebox'
