import assert from "node:assert/strict";
import { describe, it } from "node:test";
import stringWidth from "string-width";
import { type Column, renderTable } from "./table.ts";
import type { Paint } from "./text.ts";

interface Row {
  readonly name: string;
  readonly subject: string;
  readonly note: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: "NAME", text: (row) => row.name },
  { title: "NOTE", text: (row) => row.note, style: () => "green" },
  { title: "SUBJECT", text: (row) => row.subject, flexible: true },
];
const plain: Paint = (_style, text) => text;
const row = (name: string, subject: string, note = ""): Row => ({ name, subject, note });

describe("renderTable", () => {
  it("aligns wide characters and leaves out columns without content", () => {
    const lines = renderTable([row("知微", "hello"), row("lulu@kamac", "你好")], COLUMNS, {
      paint: plain,
      width: undefined,
    });
    assert.deepEqual(lines, ["NAME        SUBJECT", "知微        hello", "lulu@kamac  你好"]);
  });

  it("shortens flexible columns to the terminal, and nothing in a pipe", () => {
    const rows = [row("lulu", "一封很长很长很长的信")];
    const [, line = ""] = renderTable(rows, COLUMNS, { paint: plain, width: 18 });
    assert.equal(line, "lulu  一封很长很…");
    assert.ok(stringWidth(line) <= 18);
    assert.equal(
      renderTable(rows, COLUMNS, { paint: plain, width: undefined })[1],
      "lulu  一封很长很长很长的信",
    );
  });

  it("paints after it has measured", () => {
    const paint: Paint = (style, text) => `<${style}>${text}</>`;
    const lines = renderTable([row("a", "b", "ok")], COLUMNS, { paint, width: undefined });
    assert.deepEqual(lines, ["<bold>NAME</>  <bold>NOTE</>  <bold>SUBJECT</>", "a     <green>ok  </>  b"]);
  });

  it("lets no cell steer the terminal", () => {
    const [, line] = renderTable([row("a\u001b[2J", "b\nc")], COLUMNS, { paint: plain, width: undefined });
    assert.equal(line, "a␛[2J  b␊c");
  });
});
