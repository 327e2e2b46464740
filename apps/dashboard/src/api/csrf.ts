/** The same as `csrfHeader` of packages/protocol, whose code is for nodes. A test compares the two. */
export const csrfHeader = 'x-rouse-csrf'
