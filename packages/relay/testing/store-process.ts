import { writeSync } from "node:fs";
import { RelayError } from "@a2a-relay/protocol";
import { openSqliteStore } from "../src/stores/sqlite/sqlite-relay-store.ts";
import { aSend, newId } from "./store-builders.ts";

/**
 * A process that sends to the store at the given path until it is killed or its disk fails. It prints `sent <id>` for
 * every answered send, `refused <code>` for the others, and `fatal` before it ends.
 */
const [path = ""] = process.argv.slice(2);
const say = (words: string): void => void writeSync(1, `${words}\n`);

const store = await openSqliteStore({
  path,
  checkpointPages: 100_000,
  onFatal: () => {
    say("fatal");
    process.exit(3);
  },
});
say("open");
for (;;) {
  const changes = aSend({ id: newId(`p${process.pid}`), json: JSON.stringify({ body: "知".repeat(3_000) }) });
  try {
    await store.commit(changes);
    say(`sent ${changes.messages[0].id}`);
  } catch (error) {
    say(`refused ${RelayError.from(error).code}`);
  }
}
