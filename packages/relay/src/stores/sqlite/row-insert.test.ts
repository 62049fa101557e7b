import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { RowInsert } from "./row-insert.ts";

function messages(): { readonly insert: RowInsert; readonly all: () => unknown[] } {
  const database = new DatabaseSync(":memory:");
  database.exec("create table message (id integer primary key, body text not null) strict");
  const insert = new RowInsert(database, {
    into: "insert into message (id, body)",
    row: "(?, ?)",
    onConflict: "on conflict do nothing",
  });
  const all = database.prepare("select id, body from message order by id", { returnArrays: true });
  return { insert, all: () => all.all() };
}

const rowsFrom = (first: number, count: number): [number, string][] =>
  Array.from({ length: count }, (_, index) => [first + index, `信 ${first + index}`]);

describe("inserting rows", () => {
  for (const count of [0, 1, 2, 15, 16, 17, 32, 100]) {
    it(`writes ${count} of them, each as it was given`, () => {
      const { insert, all } = messages();
      assert.equal(insert.run(rowsFrom(1, count)), count);
      assert.deepEqual(all(), rowsFrom(1, count));
    });
  }

  it("counts only those that met no conflict", () => {
    const { insert, all } = messages();
    insert.run(rowsFrom(20, 2));
    assert.equal(insert.run(rowsFrom(1, 40)), 38);
    assert.equal(all().length, 40);
    assert.equal(insert.run(rowsFrom(7, 1)), 0);
  });
});
