export type { PushedMessage, TestRouse, TestRouseOptions } from './test-rouse.ts'
export { testRouse } from './test-rouse.ts'
