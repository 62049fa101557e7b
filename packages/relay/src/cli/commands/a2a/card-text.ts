import type { AgentCard } from "@a2a-relay/protocol";
import { type Paint, type Fact, factLines, visibleLine } from "../../terminal/text.ts";

type Members = Readonly<Record<string, unknown>>;

/** A 1.0 card for people: name, addresses, skills, security, extensions. */
export function a2aCardLines(card: AgentCard, paint: Paint): readonly string[] {
  const provider = objectIn(card["provider"]);
  const sections: readonly (readonly [title: string, facts: readonly Fact[]])[] = [
    ["interfaces", listIn(card["supportedInterfaces"]).map(interfaceFact)],
    ["skills", listIn(card["skills"]).map(skillFact)],
    ["security", securityFacts(card)],
    ["extensions", listIn(objectIn(card["capabilities"])["extensions"]).map(extensionFact)],
  ];
  return [
    words([paint("bold", visibleLine(textIn(card["name"]))), visibleLine(textIn(card["version"]))]),
    ...factLines([
      ["description", textIn(card["description"])],
      ["provider", words([textIn(provider["organization"]), textIn(provider["url"])])],
      ["documentation", textIn(card["documentationUrl"])],
      ["can", abilities(objectIn(card["capabilities"])).join(", ")],
      ["takes", textsIn(card["defaultInputModes"]).join(", ")],
      ["gives", textsIn(card["defaultOutputModes"]).join(", ")],
    ]),
    ...sections.flatMap(([title, facts]) =>
      facts.length === 0 ? [] : [paint("cyan", title), ...factLines(facts)],
    ),
  ];
}

function abilities(capabilities: Members): readonly string[] {
  const names = [
    ["streaming", "stream"],
    ["pushNotifications", "push"],
    ["extendedAgentCard", "show an extended card"],
  ] as const;
  return names.filter(([member]) => capabilities[member] === true).map(([, name]) => name);
}

function interfaceFact(one: Members): Fact {
  const tenant = textIn(one["tenant"]);
  return [
    `${textIn(one["protocolBinding"])} ${textIn(one["protocolVersion"])}`.trim(),
    words([textIn(one["url"]), tenant === "" ? "" : `tenant ${tenant}`]),
  ];
}

function skillFact(skill: Members): Fact {
  const tags = textsIn(skill["tags"]);
  const about = [textIn(skill["name"]), textIn(skill["description"])]
    .filter((text) => text !== "")
    .join(": ");
  return [textIn(skill["id"]), words([about, tags.length === 0 ? "" : `[${tags.join(", ")}]`]) || "-"];
}

function extensionFact(extension: Members): Fact {
  const required = extension["required"] === true ? "(required)" : "";
  return [textIn(extension["uri"]), words([textIn(extension["description"]), required]) || "-"];
}

/** Each scheme, then the required ones. */
function securityFacts(card: AgentCard): readonly Fact[] {
  const schemes = Object.entries(objectIn(card["securitySchemes"])).map(([name, scheme]): Fact => [
    name,
    schemeText(objectIn(scheme)),
  ]);
  const needs = listIn(card["securityRequirements"]).map(requirementText);
  return needs.length === 0 ? schemes : [...schemes, ["needed", needs.join(", or ")]];
}

/** `httpAuth Bearer: …`. In 1.0 the name of the only member is the kind. */
function schemeText(written: Members): string {
  const [kind = "", value] = schemeIn(written);
  const { description, scheme, location, name, openIdConnectUrl } = objectIn(value);
  const how = words([
    kind.replace(/SecurityScheme$/, ""),
    ...[scheme, location, name, openIdConnectUrl].map(textIn),
  ]);
  return [how, textIn(description)].filter((text) => text !== "").join(": ");
}

/** Servers of the official SDK 1.3 write their internal form: `{"scheme": {"$case": kind, "value": …}}`. */
function schemeIn(written: Members): readonly [kind: string, value: unknown] | readonly [] {
  const inner = objectIn(written["scheme"]);
  const kind = textIn(inner["$case"]);
  return kind === "" ? (Object.entries(written)[0] ?? []) : [kind, inner["value"]];
}

function requirementText(requirement: Members): string {
  const schemes = Object.entries(objectIn(requirement["schemes"])).map(([name, scopes]) => {
    const list = textsIn(objectIn(scopes)["list"]);
    return list.length === 0 ? name : `${name} (${list.join(", ")})`;
  });
  return schemes.length === 0 ? "nothing" : schemes.join(" and ");
}

function words(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("  ");
}

/** Cards are not trusted: members of a wrong type are left out. */
function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === "string") : [];
}

function objectIn(value: unknown): Members {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : {};
}

function listIn(value: unknown): readonly Members[] {
  return Array.isArray(value) ? value.map(objectIn) : [];
}
