import { quote, RelayError } from "@a2a-relay/protocol";
import type { Document, LineCounter } from "yaml";

interface YamlSource {
  readonly file: string;
  readonly document: Document;
  readonly lines: LineCounter;
}

type YamlPath = readonly (string | number)[];

/** A value of a YAML file with its position, so that errors can name the line. */
export class YamlNode {
  readonly value: unknown;
  readonly #source: YamlSource;
  readonly #path: YamlPath;

  constructor(value: unknown, source: YamlSource, path: YamlPath = []) {
    this.value = value;
    this.#source = source;
    this.#path = path;
  }

  /** 1 for the first line of the file. */
  get line(): number {
    const { document, lines } = this.#source;
    for (let length = this.#path.length; length > 0; length -= 1) {
      const node: unknown = document.getIn(this.#path.slice(0, length), true);
      const range = typeof node === "object" && node !== null && "range" in node ? node.range : undefined;
      if (Array.isArray(range)) return lines.linePos(Number(range[0])).line;
    }
    return 1;
  }

  refuse(expected: string): never {
    throw this.error(`expected ${expected}, got ${quote(this.value)}`);
  }

  error(problem: string): RelayError {
    const where = this.#path
      .map((step) => (typeof step === "number" ? `[${step + 1}]` : `.${step}`))
      .join("");
    const prefix = where === "" ? "" : `${where.replace(/^\./, "")}: `;
    return new RelayError("invalid_argument", `${this.#source.file}:${this.line}: ${prefix}${problem}`);
  }

  /** The members of a map. Refuses other members than the known ones. */
  members<Name extends string>(known: readonly Name[]): Readonly<Partial<Record<Name, YamlNode>>> {
    const { value } = this;
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      return this.refuse(`a map with ${known.join(", ")}`);
    }
    const members: Partial<Record<Name, YamlNode>> = {};
    for (const [key, member] of Object.entries(value)) {
      const node = new YamlNode(member, this.#source, [...this.#path, key]);
      const name = known.find((each) => each === key);
      if (name === undefined) throw node.error(`unknown; known here are ${known.join(", ")}`);
      members[name] = node;
    }
    return members;
  }

  items(countMax: number): readonly YamlNode[] {
    const { value } = this;
    if (!Array.isArray(value)) return this.refuse("a list");
    if (value.length > countMax) throw this.error(`has ${value.length} items, at most ${countMax} are read`);
    return value.map((item: unknown, index) => new YamlNode(item, this.#source, [...this.#path, index]));
  }

  text(): string {
    const { value } = this;
    if (typeof value === "string") return value;
    // An unquoted number or boolean is often meant as a text.
    const isScalar = typeof value === "number" || typeof value === "boolean";
    return this.refuse(isScalar ? "a text; put it in quotes" : "a text");
  }

  filledText(): string {
    const text = this.text();
    return text.trim() === "" ? this.refuse("a text that is not empty") : text;
  }

  boolean(): boolean {
    return typeof this.value === "boolean" ? this.value : this.refuse("true or false");
  }

  oneOf<Choice extends string>(choices: readonly Choice[]): Choice {
    return choices.find((choice) => choice === this.value) ?? this.refuse(`one of ${choices.join(", ")}`);
  }

  integer({ min, max }: { readonly min: number; readonly max: number }): number {
    const { value } = this;
    const isRight = typeof value === "number" && Number.isInteger(value) && value >= min && value <= max;
    return isRight ? value : this.refuse(`a whole number from ${min} to ${max}`);
  }
}
