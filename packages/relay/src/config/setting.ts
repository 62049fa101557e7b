/** Throws with what was expected; the caller adds the setting's name, its value and its source. */
export type Complain = (expected: string) => never;

/** One setting: its names, its meaning, its default. */
export interface Setting<Value> {
  /** Environment variables, the preferred one first. */
  readonly variables: readonly [string, ...string[]];
  /** The long flag, without dashes. */
  readonly flag: string;
  /** The name of the value in help texts. */
  readonly placeholder: string;
  readonly meaning: string;
  readonly fallback: Value;
  readonly parse: (text: string, complain: Complain) => Value;
  /** A secret is never shown, neither in errors nor by `config`. */
  readonly secret?: boolean;
}

type Names = Pick<Setting<unknown>, "variables" | "flag" | "meaning">;

interface IntegerOptions extends Names {
  readonly fallback: number;
  readonly minimum: number;
  readonly maximum: number;
  /** Explains a limit or a special value. */
  readonly remark?: string;
}

export function integerSetting(options: IntegerOptions): Setting<number> {
  const { minimum, maximum, remark, ...names } = options;
  const range = `a whole number from ${minimum} to ${maximum}`;
  const expected = remark === undefined ? range : `${range} (${remark})`;
  return {
    ...names,
    placeholder: "n",
    parse(text, complain) {
      const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
      return value >= minimum && value <= maximum ? value : complain(expected);
    },
  };
}

const SWITCH: ReadonlyMap<string, boolean> = new Map([
  ...["1", "true", "yes", "on"].map((word) => [word, true] as const),
  ...["0", "false", "no", "off"].map((word) => [word, false] as const),
]);

export function switchSetting(names: Names & { readonly fallback: boolean }): Setting<boolean> {
  return {
    ...names,
    placeholder: "on|off",
    parse: (text, complain) =>
      SWITCH.get(text.toLowerCase()) ?? complain("1, true, yes or on, or 0, false, no or off"),
  };
}
