import type { RelayStore } from "../src/core/ports/relay-store.ts";

type Method = (...given: readonly unknown[]) => unknown;

/**
 * One store over two handles of one database, as two relays have: each call of any noun's method goes to the other
 * handle in turn.
 */
export function alternating(first: RelayStore, second: RelayStore): RelayStore {
  let isSecond = true;
  const next = (): RelayStore => {
    isSecond = !isSecond;
    return isSecond ? second : first;
  };
  const noun = (name: keyof RelayStore): object =>
    new Proxy(first[name], {
      get:
        (_, method) =>
        (...given: readonly unknown[]) => {
          const part = next()[name] as unknown as Readonly<Record<PropertyKey, Method>>;
          return part[method]?.(...given);
        },
    });
  const names = Object.keys(first) as (keyof RelayStore)[];
  const nouns = Object.fromEntries(names.map((name) => [name, noun(name)])) as unknown as RelayStore;
  return {
    ...nouns,
    commit: (changes) => next().commit(changes),
    probe: (nowMs) => next().probe(nowMs),
    [Symbol.asyncDispose]: async () => {
      await first[Symbol.asyncDispose]();
      await second[Symbol.asyncDispose]();
    },
  };
}
