import { operations } from "@a2a-relay/protocol";
import type { TSchema } from "typebox";
import { fieldsOf, type Property, type Route } from "./route.ts";

/** The same routes as in the OpenAPI document, as one page that needs no script and no network. */
export function docsPage(routes: readonly Route[], version: string): string {
  const tags = [...new Set(routes.map((route) => route.tag))];
  const sections = tags.map((tag) => {
    const own = routes.filter((route) => route.tag === tag);
    return `<section id="${slug(tag)}"><h2>${escape(tag)}</h2>${own.map(routeBlock).join("")}</section>`;
  });
  const links = tags.map((tag) => `<a href="#${slug(tag)}">${escape(tag)}</a>`).join(" ");
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>a2a-relay ${escape(version)}</title><style>${STYLE}</style></head>
<body><header><h1>a2a-relay <small>${escape(version)}</small></h1>
<p>A durable message relay for AI agents. JSON in and out; times are ISO 8601 in UTC, <code>*_ms</code> are integers.
Errors are <code>{"error":{"code","message","details"}}</code>, below <code>/a2a/</code>
<code>{"kind":"error","message","code"}</code>.
Machine-readable: <a href="${operations.service.openapi.path}">openapi.json</a>.</p><nav>${links}</nav></header>
<main>${sections.join("")}</main></body></html>`;
}

function routeBlock(route: Route): string {
  const answers = Object.entries(route.answers)
    .map(([status, { description }]) => `<li><b>${status}</b> ${escape(description)}</li>`)
    .join("");
  return `<details><summary><span class="method ${route.method}">${route.method}</span>
<code>${escape(route.path)}</code> <span>${escape(route.summary)}</span></summary>
${fields("Query", route.query)}${fields("Body", route.body)}<ul>${answers}</ul></details>`;
}

function fields(title: string, schema: TSchema | undefined): string {
  const { properties, required } = fieldsOf(schema);
  const rows = Object.entries(properties).map(([name, property]) => {
    const must = required.includes(name) ? " <b>required</b>" : "";
    return `<tr><td><code>${escape(name)}</code>${must}</td><td>${escape(typeOf(property))}</td>
<td>${escape(noteOf(property))}</td></tr>`;
  });
  return rows.length === 0 ? "" : `<h3>${title}</h3><table>${rows.join("")}</table>`;
}

function typeOf(property: Property): string {
  if (property.enum !== undefined) return property.enum.join(" | ");
  if (property.const !== undefined) return JSON.stringify(property.const);
  if (property.anyOf !== undefined) return property.anyOf.map(typeOf).join(" | ");
  if (property.type === "array") return `${typeOf(property.items ?? {})}[]`;
  return property.title ?? property.type ?? "any";
}

function noteOf(property: Property): string {
  const notes = [
    property.description,
    property.default === undefined ? undefined : `default ${JSON.stringify(property.default)}`,
    property.maximum === undefined ? undefined : `${property.minimum ?? 0} to ${property.maximum}`,
    property.maxLength === undefined ? undefined : `at most ${property.maxLength} characters`,
    property.maxItems === undefined ? undefined : `at most ${property.maxItems} items`,
  ];
  return notes.filter((note) => note !== undefined).join("; ");
}

function slug(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
}

function escape(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

const STYLE = `
:root{color-scheme:light dark;--line:color-mix(in srgb,currentColor 18%,transparent)}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{margin-bottom:.2rem}h1 small{font-weight:400;opacity:.6;font-size:1rem}h2{margin:2rem 0 .5rem}
h3{font-size:.9rem;margin:1rem 0 .3rem}nav a{margin-right:1rem}
details{border:1px solid var(--line);border-radius:8px;padding:.5rem .8rem;margin:.4rem 0}
summary{cursor:pointer}summary>span:last-child{opacity:.75;margin-left:.4rem}
.method{display:inline-block;min-width:4.2rem;text-align:center;border-radius:5px;color:#fff;
font:600 .75rem/1.7 ui-monospace,monospace;margin-right:.4rem}
.GET{background:#2b6cb0}.POST{background:#2f855a}.DELETE{background:#c53030}
table{border-collapse:collapse;width:100%;font-size:.88rem}
td{border-top:1px solid var(--line);padding:.3rem .6rem .3rem 0;vertical-align:top}
code{font:.9em ui-monospace,monospace}ul{margin:.8rem 0 .2rem;padding-left:1.2rem}`;
