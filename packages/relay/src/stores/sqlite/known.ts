/**
 * What was read before, by tenant and name, so that it need not be read again. A map in a map, because a key made of
 * both would be a new text, to be hashed at every look. Full, it forgets all: what is asked for comes back at once.
 */
export class Known<Value> {
  readonly #max: number;
  readonly #tenants = new Map<string, Map<string, Value>>();
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get(tenant: string, name: string): Value | undefined {
    return this.#tenants.get(tenant)?.get(name);
  }

  set(tenant: string, name: string, value: Value): void {
    if (this.#size >= this.#max) this.clear();
    this.#size += 1;
    const names = this.#tenants.get(tenant);
    if (names === undefined) this.#tenants.set(tenant, new Map([[name, value]]));
    else names.set(name, value);
  }

  clear(): void {
    this.#tenants.clear();
    this.#size = 0;
  }
}

/** The same for what is known of two names together. */
export class KnownPairs<Value> {
  readonly #max: number;
  readonly #firsts: Known<Map<string, Value>>;
  #size = 0;

  constructor(max: number) {
    this.#max = max;
    this.#firsts = new Known(max);
  }

  get(tenant: string, first: string, second: string): Value | undefined {
    return this.#firsts.get(tenant, first)?.get(second);
  }

  set(tenant: string, first: string, second: string, value: Value): void {
    if (this.#size >= this.#max) this.clear();
    this.#size += 1;
    const seconds = this.#firsts.get(tenant, first);
    if (seconds === undefined) this.#firsts.set(tenant, first, new Map([[second, value]]));
    else seconds.set(second, value);
  }

  clear(): void {
    this.#firsts.clear();
    this.#size = 0;
  }
}
