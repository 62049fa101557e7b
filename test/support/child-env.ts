/** The environment of a child process: nothing of the caller's but PATH and the shared compile cache. */
export function childEnv(more: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const { PATH = "", NODE_COMPILE_CACHE } = process.env;
  return { PATH, ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }), ...more };
}
