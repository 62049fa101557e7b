import type { AgentCard } from "@a2a-relay/protocol";
import type { AgentRecord } from "../ports/agents.ts";

/** The words of a question that carry meaning. */
export type SearchWords = readonly string[];

/** Stop words: they are in most questions and say nothing about what is sought. */
const COMMON_WORDS: ReadonlySet<string> = new Set(
  `a about agent agents all an and any anybody anyone are available can could do does find for get give has have help
  here i in is list look looking me my need of on online or our please registered relay say search show some somebody
  someone tell that the there to us want what where which who with you your
  一个 一下 上 个 中 了 什么 代理 会 做 列出 发 可以 吗 呢 哪个 哪些 哪位 在 对 帮 帮忙 帮我 我 我们 找 找到 所有 擅长
  是 智能 智能体 有 有没有 查找 的 给 能 能够 要 请 请问 谁 谁会 谁能 这里 那个 都 需要`.split(/\s+/),
);

const SEGMENTER = new Intl.Segmenter("zh", { granularity: "word" });

/** Punctuation inside a word belongs to it: node.js, snake_case, o'clock. */
const LATIN_WORD = /[\p{Script=Latin}\p{N}\p{M}]+(?:[._'’][\p{Script=Latin}\p{N}\p{M}]+)*/gu;

/** How much of a word must match: translate, translates, translation and translator are the same here. */
const STEM_CHARS_MIN = 5;
const ENDING_CHARS = 2;
/** Shorter words are part of too many others. */
const WHOLE_CHARS_MIN = 4;

/** A match in a name counts more than one in a description. */
const WEIGHTS = { name: 4, skill: 3, text: 1 } as const;

/** Limits on the length of a question and on the words that are sought. */
const QUESTION_CHARS_MAX = 2_000;
const WORDS_MAX = 20;

export function searchWords(question: string): SearchWords {
  const words = new Set(segmentsOf(question.trim().slice(0, QUESTION_CHARS_MAX)));
  return [...words].filter((word) => !COMMON_WORDS.has(word)).slice(0, WORDS_MAX);
}

/** 0 when no word matches. Each word counts once, in the field of the highest weight. */
export function fitOf(agent: AgentRecord, sought: SearchWords): number {
  const fields = fieldsOf(agent).map(({ weight, texts }) => {
    const text = plain(texts.join("\n"));
    return { weight, text, words: latinWordsOf(text) };
  });
  return sought
    .map((word) => fields.find(({ text, words }) => holds(word, text, words))?.weight ?? 0)
    .reduce((sum, weight) => sum + weight, 0);
}

interface Field {
  readonly weight: number;
  readonly texts: readonly string[];
}

/** By falling weight. */
function fieldsOf({
  id,
  displayName,
  aliases,
  card,
  skills,
  representativeQueries,
}: AgentRecord): readonly Field[] {
  const names = [id, displayName, ...aliases, ...textsIn(card["name"])];
  const abilities = [...skills.flatMap(textsIn), ...textsIn(card["skills"])];
  const rest = [...textsIn(card["description"]), ...representativeQueries];
  return [
    { weight: WEIGHTS.name, texts: names },
    { weight: WEIGHTS.skill, texts: abilities },
    { weight: WEIGHTS.text, texts: rest },
  ];
}

/** All texts at any depth. Tags are keys of objects or items of lists. */
function textsIn(value: AgentCard[string]): readonly string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return (value as readonly unknown[]).flatMap(textsIn);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, one]) => (name === "tags" ? tagWords(one) : textsIn(one)));
}

function tagWords(tags: unknown): readonly string[] {
  if (typeof tags !== "object" || tags === null || Array.isArray(tags)) return textsIn(tags);
  return Object.entries(tags).map(([key, value]) => `${key} ${String(value)}`);
}

/** Words of any script. Too slow for the texts of all agents. */
function segmentsOf(text: string): readonly string[] {
  return [...SEGMENTER.segment(plain(text))]
    .filter(({ isWordLike }) => isWordLike === true)
    .map(({ segment }) => segment);
}

/** The Latin words, each once; words of other scripts are matched anywhere in the text. */
function latinWordsOf(text: string): readonly string[] {
  return [...new Set(text.match(LATIN_WORD))];
}

function plain(text: string): string {
  return text.normalize("NFKC").toLowerCase();
}

/** Segmentation varies in scripts without spaces, so their words match anywhere in the text. */
function holds(word: string, text: string, words: readonly string[]): boolean {
  if (!/^[\p{Script=Latin}\p{N}]/u.test(word)) return text.includes(word);
  return words.some(
    (other) => beginsAlike(word, other) || (other.length >= WHOLE_CHARS_MIN && word.startsWith(other)),
  );
}

/** Short words begin too many others, so at most an ending may follow them. */
function beginsAlike(word: string, other: string): boolean {
  if (word.length < STEM_CHARS_MIN) {
    return other.startsWith(word) && other.length <= word.length + ENDING_CHARS;
  }
  return other.startsWith(word.slice(0, Math.max(STEM_CHARS_MIN, word.length - ENDING_CHARS)));
}
